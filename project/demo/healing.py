"""What a fault did to the runs, and how long it took until they went on: read from their rows alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from groupjobs.lifecycle import LIVE, READY, RUNNING
from groupjobs.models import JobRun

LONGEST = 120.0  # seconds that a healing is watched

Fences = dict[int, int]


@dataclass
class Healing:
    """A fault and its mend, in figures; durations in seconds since the fault, None as long as unknown.

    `runs`: those that were in hand (of a flush: those that waited). `freed`: the dead holds none of them any
    more, so their groups wait for their next turn (of a flush: a run has begun). `again`: each of them has had
    that turn, or has ended. `over`: no more will be written here.
    """

    number: int
    damage: str
    pid: int = 0
    runs: int = 0
    freed: float | None = None
    again: float | None = None
    successor: int = 0
    over: bool = False
    _look: Callable[[Healing, float], None] = field(default=lambda healing, seconds: None, repr=False)
    _struck: float = field(default_factory=time.monotonic, repr=False)

    def look(self) -> None:
        """Note what has come about since the last look."""
        seconds = time.monotonic() - self._struck
        if not self.over:
            self._look(self, seconds)
            self.over = self.again is not None or not self.runs or seconds > LONGEST

    def told(self) -> dict[str, Any]:
        """The figures, for the pages."""
        return {name: value for name, value in asdict(self).items() if not name.startswith("_")}


def in_hand(pid: int) -> Fences:
    """The runs that the worker with this process id holds, with their fences."""
    held = JobRun.objects.filter(status=RUNNING, worker__contains=f":{pid}:")
    return dict(held.values_list("pk", "fence"))


def of_worker(number: int, pid: int, held: Fences, leased: Callable[[Fences], bool]) -> Healing:
    """The healing after the death of a worker that held these runs; `leased`: whether Redis says so still."""

    def look(healing: Healing, seconds: float) -> None:
        if healing.freed is None and not leased(held):
            healing.freed = seconds
        same = JobRun.objects.filter(pk__in=held, status__in=sorted(LIVE)).values_list("pk", "fence")
        if healing.freed is not None and all(fence != held[run] for run, fence in same):
            healing.again = seconds

    return Healing(number, "kill", pid, len(held), _look=look)


def of_redis(number: int, fence: int) -> Healing:
    """The healing after a flush of Redis; every fence that is given from now on is above `fence`."""

    def look(healing: Healing, seconds: float) -> None:
        if JobRun.objects.filter(fence__gt=fence).exists():
            healing.freed = healing.again = seconds

    due = JobRun.objects.filter(Q(run_after=None) | Q(run_after__lte=Now()), status=READY)
    return Healing(number, "flush", runs=due.count(), _look=look)
