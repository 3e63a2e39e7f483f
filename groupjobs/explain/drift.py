"""Drift between rows and Redis: what recovery would do in a queue."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

from groupjobs import ledger
from groupjobs.explain.queues import REDIS_ERRORS
from groupjobs.recovery import Report, Scope
from groupjobs.recovery.judge import Judge
from groupjobs.store import store_for

PAGE: Final = 500
COUNTS: Final = ("requeued", "abandoned", "republished", "released")


@dataclass(slots=True)
class Look:
    """What recovery would do in a queue. `whole` says that every live row was examined."""

    queue: str
    state: str = ""
    examined: int = 0
    whole: bool = True
    counts: dict[str, int] = field(default_factory=dict)
    details: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""

    @property
    def drifted(self) -> bool:
        """Whether there is anything to mend."""
        return bool(self.counts) or self.state == "rebuild"


def look(queue: str, seconds: float) -> Look:
    """Judge the live rows of a queue, oldest first, for so many seconds; nothing is changed."""
    found = Look(queue)
    report = Report(dry_run=True)
    try:
        found.state = store_for(queue).snapshot([]).state
        found.whole = _judge(queue, report, seconds)
    except REDIS_ERRORS as error:
        found.problem = str(error)
    found.examined = report.counts["examined"]
    found.counts = {word: report.counts[word] for word in COUNTS if report.counts[word]}
    found.details = [line for line in report.details if line["verdict"] != "kept"]
    return found


def _judge(queue: str, report: Report, seconds: float) -> bool:
    until, after = time.monotonic() + seconds, 0
    judge = Judge(store_for(queue), queue, Scope(queue=queue), report)
    while page := ledger.live_page(queue, after, PAGE):
        if not judge.page(page):
            return True
        after = page[-1].pk
        if time.monotonic() > until:
            return len(page) < PAGE
    return True
