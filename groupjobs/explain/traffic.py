"""What ended in the last hour, minute by minute, from samples: bounded work whatever the throughput."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import quantiles
from typing import Any, Final

from django.db.models.functions import Now

from groupjobs import ledger
from groupjobs.explain.ages import seconds_between
from groupjobs.lifecycle import SUCCEEDED
from groupjobs.models import JobRun

MINUTES: Final = 60
SAMPLE: Final = 400  # ended runs that are read of a minute; what lies beyond is extrapolated
SETTLED: Final = 2  # minutes after which a minute's numbers are kept: late commits have arrived by then

_known: dict[tuple[str, datetime], dict[str, Minute]] = {}


@dataclass(slots=True)
class Minute:
    """One queue's minute: runs that succeeded and others that ended (estimates when sampled), and waits in seconds."""

    succeeded: float = 0.0
    others: float = 0.0
    waits: list[float] = field(default_factory=list)

    @property
    def middle(self) -> float | None:
        """The median wait."""
        return _quantile(self.waits, 50)

    @property
    def slow(self) -> float | None:
        """The wait that 95 of 100 did not exceed."""
        return _quantile(self.waits, 95)


def last_hour() -> dict[str, list[Minute]]:
    """The last sixty whole minutes of each queue that ended a run in them, oldest first."""
    now = JobRun.objects.using(ledger.alias()).order_by("-pk").annotate(now=Now()).values_list("now", flat=True).first()
    if now is None:
        return {}
    end = now.replace(second=0, microsecond=0)
    minutes = [_minute(end - timedelta(minutes=back), back) for back in range(MINUTES, 0, -1)]
    queues = sorted({queue for minute in minutes for queue in minute})
    return {queue: [minute.get(queue, Minute()) for minute in minutes] for queue in queues}


def forget() -> None:
    """Drop what is kept of past minutes."""
    _known.clear()


def _minute(start: datetime, age: int) -> dict[str, Minute]:
    key = (ledger.alias(), start)
    known = _known.get(key)
    if known is not None:
        return known
    minute = _read(start)
    if age > SETTLED:
        _known[key] = minute
        for old in sorted(_known)[: -4 * MINUTES]:
            _known.pop(old, None)
    return minute


def _read(start: datetime) -> dict[str, Minute]:
    rows = JobRun.objects.using(ledger.alias()).order_by("finished_at")
    ended = rows.filter(finished_at__gte=start, finished_at__lt=start + timedelta(minutes=1))
    sample = list(ended.values_list("queue", "status", "enqueued_at", "started_at", "finished_at")[:SAMPLE])
    factor = _factor(start, sample)
    minutes: dict[str, Minute] = {}
    for queue, status, enqueued, started, _finished in sample:
        minute = minutes.setdefault(queue, Minute())
        if status == SUCCEEDED:
            minute.succeeded += factor
        else:
            minute.others += factor
        wait = seconds_between(enqueued, started)
        if wait is not None:
            minute.waits.append(max(0.0, wait))
    return minutes


def _factor(start: datetime, sample: Sequence[Any]) -> float:
    """How many runs of the minute each row of a full sample stands for."""
    if len(sample) < SAMPLE:
        return 1.0
    span = seconds_between(start, sample[-1][4]) or 0.0
    return 60.0 / min(max(span, 0.1), 60.0)


def _quantile(values: Iterable[float], percent: int) -> float | None:
    known = sorted(values)
    if not known:
        return None
    return known[0] if len(known) == 1 else quantiles(known, n=100, method="inclusive")[percent - 1]
