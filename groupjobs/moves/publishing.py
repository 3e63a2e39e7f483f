"""Publish: tell Redis of runs that are committed, and ring the bell. Never fails its caller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils import timezone
from redis.exceptions import ConnectionError as RedisDown
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisSilent

from groupjobs import bell, ledger
from groupjobs.outage import Outage
from groupjobs.store import Publication, store_for
from groupjobs.store.keys import line_name

if TYPE_CHECKING:
    from groupjobs.models import JobRun

# What a server may do to a script call: refuse the connection, keep silent, be out of memory or read-only.
# A DataError is none of these: it is a fault of ours, and trying again would hide it.
REDIS_ERRORS: Final = (RedisDown, RedisSilent, ResponseError, OSError)

outage = Outage("Redis (publishing)")


def publication(run: JobRun) -> Publication:
    """What Redis has to know of a live run: ids and numbers, no payload."""
    suspect = 1 if run.alone and run.status == "READY" else 0
    return Publication(
        run=run.pk,
        group=line_name(run.group, run.pk),
        order=run.order,
        priority=run.priority,
        life=run.life,
        fence=run.fence,
        alone=2 if run.max_losses == 0 or run.time_limit is not None or run.coalesces else suspect,
        due_ms=_milliseconds(run.run_after),
        yields=run.yields,
    )


def _milliseconds(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    if timezone.is_naive(moment) and not settings.USE_TZ:
        moment = timezone.make_aware(moment)
    return int(moment.timestamp() * 1000)


def publish(runs: Sequence[JobRun]) -> bool:
    """Tell Redis of runs whose rows are committed, one script call a queue and thousand.

    When Redis is down or silent the rows are flagged in one UPDATE and a sweep publishes them: False.
    """
    told = True
    for queue, members in groupby(sorted(runs, key=lambda run: (run.queue, run.pk)), key=lambda run: run.queue):
        told &= _publish_queue(queue, list(members))
    return told


def _publish_queue(queue: str, runs: list[JobRun]) -> bool:
    if outage.skip():
        _flag(runs)
        return False
    try:
        reply = store_for(queue, "enqueue").enqueue([publication(run) for run in runs])
    except REDIS_ERRORS as error:
        outage.failed(error, "runs are in the database and will be published when it is back")
        _flag(runs)
        return False
    outage.ended()
    if reply.bells:
        bell.ring(queue, reply.bells)
    return True


def _flag(runs: Iterable[JobRun]) -> None:
    try:
        ledger.flag_unpublished([run.pk for run in runs])
    except Exception as error:  # the full sweep finds what could not be flagged
        outage.failed(error, "the flag could not be written either; the next full sweep finds the runs")


def publish_later(runs: Sequence[JobRun], using: str) -> None:
    """Publish when the current transaction of alias `using` commits; at once outside of one."""
    from django.db import transaction

    def published() -> Any:
        return publish(runs)

    transaction.on_commit(published, using=using, robust=True)
