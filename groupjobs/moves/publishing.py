"""Publish: tell Redis of runs that are committed, and ring the bell. Never fails its caller."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils import timezone
from redis.exceptions import ConnectionError as RedisDown
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisSilent

from groupjobs import bell, ledger
from groupjobs.moves.telling import announce
from groupjobs.outage import Outage
from groupjobs.signals import publication_failed
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
    return max(0, int(moment.timestamp() * 1000))


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
        _flag(queue, runs)
        return False
    try:
        reply = store_for(queue, "enqueue").enqueue([publication(run) for run in runs])
    except REDIS_ERRORS as error:
        outage.failed(error, "runs are in the database and will be published when it is back")
        _flag(queue, runs, error)
        return False
    outage.ended()
    if reply.bells:
        bell.ring(queue, reply.bells)
    return True


def _flag(queue: str, runs: Sequence[JobRun], cause: Exception | None = None) -> None:
    try:
        ledger.flag_unpublished([run.pk for run in runs])
    except Exception as error:  # the full sweep finds what could not be flagged
        outage.failed(error, "the flag could not be written either; the next full sweep finds the runs")
    announce(publication_failed, None, queue=queue, runs=[run.pk for run in runs], error=cause)


def place_anew(runs: Sequence[JobRun]) -> None:
    """Runs that wait got another time: what Redis knows of them is forgotten and told again.

    A run that is reserved just now is left alone: its consumer finds the row.
    """
    for queue, members in groupby(sorted(runs, key=lambda run: (run.queue, run.pk)), key=lambda run: run.queue):
        asked = [(run.pk, line_name(run.group, run.pk)) for run in members]
        try:
            known = store_for(queue).snapshot(asked).entries
            waiting = [(run, group, known[run]) for run, group in asked if run in known and not known[run].consumer]
            store_for(queue).drop([(run, group, e.fence, max(e.life, e.again)) for run, group, e in waiting])
        except REDIS_ERRORS as error:
            outage.failed(error, "runs keep the time that it knows until it is back")
    publish(runs)


def publish_later(runs: Sequence[JobRun], using: str) -> None:
    """Publish when the current transaction of alias `using` commits; at once outside of one."""
    from django.db import transaction

    def published() -> Any:
        return publish(runs)

    transaction.on_commit(published, using=using, robust=True)
