"""What a recovery found and did: counts under stable names, and one line for each run that it moved."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

COUNTS: Final = (
    "examined",
    "requeued",
    "abandoned",
    "republished",
    "released",
    "dropped",
    "reported",
    "rung",
    "kept",
    "refused",
)
MOVED: Final = ("requeued", "abandoned", "republished", "released", "dropped")
MOST_DETAILS: Final = 1000


@dataclass(frozen=True, slots=True)
class Scope:
    """What to recover: queues ('' for all), one group, some runs; `abandon` ends ghosts instead of another try.

    `limit` bounds how many runs are moved; `patience` is how many seconds a silent worker may take to
    prove that it lives. `after` and `seconds` bound the look at the rows of one queue: those with greater ids,
    for so long; the report says where to go on.
    """

    queue: str = ""
    group: str | None = None
    runs: tuple[int, ...] | None = None
    abandon: bool = False
    limit: int | None = None
    patience: float = 0.0
    after: int = 0
    seconds: float | None = None

    def spent(self, began: float) -> bool:
        """Whether the time is up for a look that began then, by the monotonic clock."""
        return self.seconds is not None and time.monotonic() - began >= self.seconds


@dataclass(slots=True)
class Report:
    """Counts of one recovery. `details` lists at most a thousand runs; the counts are complete.

    `go_on`: the run after which to go on when the time was up; 0 when every row was looked at.
    """

    dry_run: bool = False
    go_on: int = 0
    queues: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    details: list[dict[str, Any]] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        """Add to one of the counts."""
        self.counts[name] += number

    def detail(self, run: int, group: str, queue: str, verdict: str, reason: str, worker: str = "") -> None:
        """Remember one run that was found, up to the bound."""
        if len(self.details) < MOST_DETAILS:
            row = {"run": run, "group": group, "queue": queue, "verdict": verdict, "reason": reason, "worker": worker}
            self.details.append(row)

    def moved(self) -> int:
        """How many runs or entries were changed."""
        return sum(self.counts[name] for name in MOVED)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data, with the stable keys."""
        return {**self.counts, "dry_run": self.dry_run, "queues": self.queues, "details": self.details}
