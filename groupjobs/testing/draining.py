"""Drain: serve every queue in this thread until nothing is ready, as a worker would."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.db import connections

from groupjobs import conf, control, ledger, moves, reports
from groupjobs.consumer.batch import Item
from groupjobs.consumer.executions import Unwatched
from groupjobs.consumer.serving import Service
from groupjobs.lifecycle import READY
from groupjobs.store import Consumer, store_for
from groupjobs.testing.memory import in_memory

if TYPE_CHECKING:
    from groupjobs.models import JobRun

_draining = False


class Drainer(Service):
    """A consumer without a guard: it says progress when a run ends, and keeps no soft time limit."""

    def __init__(self, queue: str, served: list[int], limit: int) -> None:
        nonce = uuid.uuid4().hex[:16]
        super().__init__(queue, Consumer(nonce, f"testing:{os.getpid()}:{nonce}", os.getpid()), _never, Unwatched())
        self.report = reports.deliver_here
        self.served = served
        self.limit = limit

    def _run(self, item: Item) -> None:
        if len(self.served) >= self.limit:
            raise AssertionError(f"drain() has begun {self.limit} runs and there are more; give it another limit=")
        self.served.append(item.run)
        super()._run(item)

    def serve(self) -> bool:
        """Whether there was anything to serve."""
        served = False
        try:
            while self.turn():
                served = True
                _run_on_commit()
        finally:
            self.leave(False)
        return served


def _never() -> bool:
    return False


def drain(queue: str = "", *, scheduled: bool = False, limit: int = 1000) -> list[JobRun]:
    """Run what is ready in a queue ('' is all), and what that enqueues; the runs that were begun, in that order.

    Everything is as with a worker: groups, order, retries, transactions, `on_commit`. A run of the future,
    or one that backs off, stays where it is; with `scheduled` it is taken to be due. AssertionError
    when more than `limit` attempts begin. Inside a drain it does nothing.
    """
    global _draining
    if _draining:
        return []
    served: list[int] = []
    _draining = True
    try:
        with in_memory():
            while _serve_all(queue, served, limit) or (scheduled and _bring_forward(queue)):
                pass
    finally:
        _draining = False
    return _rows(served)


def _serve_all(queue: str, served: list[int], limit: int) -> bool:
    """Publish what waits, also what no commit has published inside a test's transaction; then serve."""
    known = conf.current().queues
    names = [queue] if queue else [name for name in ledger.queues_with_live_runs() if name in known]
    before = len(served)
    for name in names:
        _publish(name)
        Drainer(name, served, limit).serve()
    return len(served) > before


def _publish(queue: str) -> None:
    after, store = 0, store_for(queue)
    while page := ledger.live_page(queue, after, 500):
        store.enqueue([moves.publication(run) for run in page if run.status == READY])
        after = page[-1].pk
    moves.mirror_groups(queue)


def _bring_forward(queue: str) -> bool:
    """Make due what waits for a time; whether there was any."""
    from groupjobs.models import JobRun

    waiting = JobRun.objects.using(ledger.alias()).filter(status=READY, run_after__isnull=False)
    runs = list((waiting.filter(queue=queue) if queue else waiting).values_list("pk", flat=True))
    return bool(control.reschedule(runs, None).changed)


def _run_on_commit() -> None:
    """Inside a test's own transaction nothing commits: call what a commit would have called."""
    for connection in connections.all(initialized_only=True):
        if not any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
            continue
        while connection.run_on_commit:
            waiting, connection.run_on_commit = connection.run_on_commit, []
            for entry in waiting:
                entry[1]()


def _rows(ids: Iterable[int]) -> list[JobRun]:
    from groupjobs.models import JobRun

    found: dict[int, Any] = JobRun.objects.using(ledger.alias()).in_bulk(list(set(ids)))
    return [found[run] for run in dict.fromkeys(ids) if run in found]
