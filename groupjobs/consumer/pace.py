"""How many runs a consumer reserves at once: as many as fit in the commit interval."""

from __future__ import annotations

from typing import Final

MOST: Final = 96  # a larger one saves little more, and holds Redis up for longer at a time


class Pace:
    """Adapts the batch size to the recent run time; one at first."""

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self.want = 1
        self._mean: float | None = None

    def ran(self, count: int, seconds: float) -> None:
        """`count` handlers took `seconds` together. The size at most quadruples, and falls at once."""
        if count == 0:
            return
        mean = seconds / count
        self._mean = mean if self._mean is None or mean > self._mean else 0.5 * (mean + self._mean)
        fitting = int(self.interval / self._mean) if self._mean > 0 else MOST
        self.want = max(1, min(fitting, self.want * 4, MOST))
