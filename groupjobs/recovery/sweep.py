"""The sweep: the same recovery, from a worker, now and then. It is no grouped run, so it cannot wait for one."""

from __future__ import annotations

from typing import Final

from django.db import Error

from groupjobs import bell, conf, ledger, moves
from groupjobs.outage import Outage
from groupjobs.recovery.pruning import prune
from groupjobs.recovery.rebuild import rebuild
from groupjobs.recovery.report import Report, Scope
from groupjobs.recovery.routine import recover
from groupjobs.signals import queue_recovered
from groupjobs.store import store_for

outage = Outage("A server that sweeps need")

QUICK: Final = 5.0  # seconds between two quick sweeps of a queue, across the cluster
PAGE: Final = 1000
SHARE: Final = 0.5  # of the interval, that a full sweep may look at rows
SHORTEST: Final = 5.0  # seconds that it may, however often there is one
PRUNED: Final = 10_000  # runs that one sweep prunes at most; the next one goes on


def sweep(queue: str, kind: str = "full") -> Report | None:
    """One sweep of a queue: "quick" publishes flagged rows, "rebuild" goes on with a rebuild, "full" recovers.

    One at a time per queue across the cluster: None when it is another's turn.
    """
    if kind == "rebuild":
        rebuild(queue)
        return None
    seconds = QUICK if kind == "quick" else conf.current().sweep_interval
    if not store_for(queue).turn(kind, seconds):
        return None
    if kind == "quick":
        return publish_flagged(queue)
    return _full(queue)


def try_to_sweep(queue: str, kind: str) -> None:
    """A sweep that a tick asked for, as it will again: a server that is away is named once, not with each of them."""
    try:
        sweep(queue, kind)
    except (Error, *moves.REDIS_ERRORS) as error:
        outage.failed(error, "sweeps are asked for until it is back")
        ledger.forget_connection()
    else:
        outage.ended()


def _full(queue: str) -> Report:
    """Recover for a bounded time; a larger table is gone through by several sweeps, each from where the last ended."""
    store = store_for(queue)
    seconds = max(SHORTEST, SHARE * conf.current().sweep_interval)
    report = recover(Scope(queue=queue, after=store.swept_to(), seconds=seconds))
    prune(queue, limit=PRUNED)
    if not report.counts["refused"]:
        store.swept(report.go_on)
    return report


def publish_flagged(queue: str) -> Report:
    """Publish the rows that Redis could not be told of when they were committed."""
    report = Report(queues=[queue])
    after = 0
    while page := ledger.unpublished_page(queue, after, PAGE):
        if not moves.publish(page):
            break
        ledger.flag_unpublished([run.pk for run in page], False)
        report.count("republished", len(page))
        after = page[-1].pk
    if report.counts["republished"]:
        moves.announce(queue_recovered, queue=queue, counts=report.counts)
        bell.ring(queue)
    return report
