"""A process is killed between every two calls that talk to a server: whatever it leaves is mended, with one meaning."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from groupjobs import recovery
from groupjobs.models import JobAttempt, JobGroup, JobRun
from groupjobs.store import Store
from tests.core.dying import survives
from tests.core.rows import QUEUE
from tests.core.serving import drain, traces
from tests.jobsapp import jobs
from tests.jobsapp.models import Written

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

Journal = Callable[[], list[list[Any]]]
STRIDE = int(os.environ.get("STRIDE", "6"))  # 1 takes every call, and a minute


def dies_before_call(number: int) -> None:
    """Every script, statement and COMMIT counts."""
    calls = count(1)
    call, commit = Store.call, BaseDatabaseWrapper._commit  # type: ignore[attr-defined]

    def tick() -> None:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted_call(self: Store, verb: str, *args: Any) -> Any:
        tick()
        return call(self, verb, *args)

    def counted_commit(self: BaseDatabaseWrapper) -> None:
        tick()
        commit(self)

    def execute(run: Any, *args: Any) -> Any:
        tick()
        return run(*args)

    Store.call = counted_call  # type: ignore[method-assign]
    BaseDatabaseWrapper._commit = counted_commit  # type: ignore[attr-defined]
    connection.execute_wrappers.append(execute)


def fresh(store: Store) -> None:
    for model in (JobAttempt, JobRun, JobGroup, Written):
        model.objects.all().delete()
    store.client.flushdb()
    assert recovery.rebuild(QUEUE)


def work() -> None:
    """In the process that dies: enqueue, then serve until all is done."""
    jobs.flaky.using(group="a").enqueue(label="a1")
    jobs.note.enqueue_many([{"label": "a2", "group": "a"}, {"label": "a3", "group": "a"}])
    jobs.writes.enqueue(label="w1", group="w")
    jobs.writes_and.using(group="w").enqueue(label="w2", what="retry")
    jobs.fails.using(group="x", after_failure="cancel").enqueue(label="x1")
    jobs.note.enqueue_many([{"label": "x2", "group": "x"}] * 2)
    drain()


def check(store: Store, said: list[list[Any]], when: str) -> None:
    rows = {(run.group, run.kwargs["label"]): run for run in JobRun.objects.order_by("-id")}
    for (_, label), run in rows.items():
        expected = {"x1": "FAILED", "x2": "CANCELLED"}.get(label, "SUCCEEDED")
        assert run.status == expected, f"{when}: {label} {run.status} {run.reason}"
        assert run.losses <= 1, when
    assert sum(run.losses for run in rows.values()) <= 1, when
    for group in "awx":
        labels = [words[0] for words in said if words[0][0] == group]
        # Runs of one batch that had ended and were not committed run again, in their order.
        firsts, lasts = list(dict.fromkeys(labels)), list(dict.fromkeys(reversed(labels)))
        assert firsts == sorted(firsts), f"{when}: {labels}"
        assert lasts == sorted(lasts, reverse=True), f"{when}: {labels}"
    for run in (run for (group, _), run in rows.items() if group == "w"):
        assert list(Written.objects.filter(run=run.pk).values_list("fence", flat=True)) == [run.fence], when
    assert traces(store) == [], when
    assert not JobGroup.objects.filter(held=True).exists(), when


def test_a9_killed_before_every_call(store: Store, journal: Journal) -> None:
    for number in count(1 if connection.vendor == "sqlite" else 1 + STRIDE // 2, STRIDE):
        fresh(store)
        before = len(journal())
        if survives(work, partial(dies_before_call, number)):
            break
        when = f"killed before call {number}"
        for worker in store.overview().workers:
            store.reap(worker=worker.worker)
        recovery.recover()
        drain()
        recovery.recover()
        drain()
        check(store, journal()[before:], when)
    assert number > 60
