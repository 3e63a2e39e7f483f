"""Damage in mid-run, and how long it takes until runs begin again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from project.demo.failure import DemoFailed

LONGEST = 120.0  # seconds that a recovery may take


@dataclass
class Fault:
    """One act of damage, done once the given share of the legs is entered.

    `strike` does it and answers the question whether a run has begun since.
    """

    name: str
    share: float
    strike: Callable[[], Callable[[], bool]]
    seconds: float | None = None
    _struck: float | None = None
    _again: Callable[[], bool] = field(default=lambda: False)

    @property
    def pending(self) -> bool:
        """Whether it is struck and not yet recovered from."""
        return self._struck is not None and self.seconds is None

    def look(self, entered: int, legs: int) -> None:
        """Strike when it is time; note the moment at which runs begin again."""
        if self._struck is None and self.share * legs <= entered < legs:
            self._struck = time.monotonic()
            self._again = self.strike()
        elif self.pending and self._again():
            self.seconds = time.monotonic() - (self._struck or 0.0)
        elif self.pending and time.monotonic() - (self._struck or 0.0) > LONGEST:
            raise DemoFailed(f"{self.name}: no run began within {LONGEST:.0f} s")

    def report(self) -> str:
        """A sentence for the end of the demo."""
        if self._struck is None:
            return f"{self.name}: not done, the file was finished first"
        if self.seconds is None:
            return f"{self.name}: every run had begun before"
        return f"{self.name}: the next run began after {self.seconds:.2f} s"


class Faults:
    """The faults of one demo, one after the other."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        """In the order in which they strike."""
        self._faults = list(faults)

    @property
    def pause(self) -> float:
        """Seconds until the next look: short while a strike is due or a recovery is measured."""
        return 0.25 if all(fault.seconds is not None for fault in self._faults) else 0.01

    def look(self, now: dict[str, Any]) -> None:
        """Let the first fault that is not recovered from look at the upload's progress."""
        for fault in self._faults:
            if fault.seconds is None:
                fault.look(now["entered"], max(now["legs"], now["lines"] - 1 - now["refused"]))
                return

    def reports(self) -> list[str]:
        """One sentence each."""
        return [fault.report() for fault in self._faults]
