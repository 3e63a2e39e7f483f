from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from groupjobs import control
from groupjobs.compat import TaskResult, task_enqueued
from groupjobs.models import JobRun
from groupjobs.store import Store
from tests.core.rows import aside, change, race
from tests.core.serving import drain, serving
from tests.jobsapp.models import Written
from tests.semantics.jobs import coalesced, newest, once, other_once, sometimes_once
from tests.semantics.seen import begins, row
from tests.servers.waiting import wait_until

several_writers = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")

Said = Callable[[], list[list[Any]]]


def test_a_second_enqueue_answers_the_twin(store: Store, journal: Said) -> None:
    first = once.enqueue("k", label="a")
    second = once.enqueue("k", label="b")
    assert second.id == first.id
    assert second.kwargs == {"label": "a"}
    drain()
    assert begins(journal) == ["a"]
    assert JobRun.objects.count() == 1


def test_a_running_run_is_a_twin_and_an_ended_one_is_none(store: Store, journal: Said, gate: Path) -> None:
    first = once.enqueue("k", label="a", gate=str(gate))
    with serving():
        wait_until(lambda: begins(journal))
        assert row(first).status == "RUNNING"
        assert once.enqueue("k", label="b").id == first.id
        gate.touch()
        wait_until(lambda: row(first).status == "SUCCEEDED")
    assert once.enqueue("k", label="c").id != first.id


def test_a_key_belongs_to_its_job_and_its_queue(store: Store) -> None:
    ids = {once.enqueue("k").id, other_once.enqueue("k").id, once.enqueue("K").id}
    assert len(ids) == 3


def test_a_callable_that_answers_none_means_no_key(store: Store) -> None:
    calls: list[Any] = [{"key": key, "label": str(n)} for n, key in enumerate(["a", None, "a", None, "b"])]
    results = sometimes_once.enqueue_many(calls)
    ids = [int(result.id) for result in results]
    assert ids[0] == ids[2]
    assert len(set(ids)) == 4
    assert [ids[0], ids[1], ids[3], ids[4]] == sorted(set(ids))
    drain()
    assert {row(result).result for result in results} == {"0", "1", "3", "4"}


def test_a_twin_is_not_enqueued_twice(store: Store) -> None:
    heard: list[str] = []

    def hear(task_result: TaskResult[..., Any], **_: Any) -> None:
        heard.append(task_result.id)

    task_enqueued.connect(hear)
    try:
        first = once.enqueue("k")
        once.enqueue("k")
    finally:
        task_enqueued.disconnect(hear)
    assert heard == [first.id]


def test_a_rolled_back_twin_was_none(store: Store) -> None:
    with transaction.atomic():
        once.enqueue("k")
        transaction.set_rollback(True)
    once.enqueue("k")
    assert JobRun.objects.count() == 1


@pytest.mark.parametrize("job", [once, newest, coalesced])
def test_two_transactions_at_once_make_one_run(store: Store, job: Any) -> None:
    """Each of them writes something else as well, and both of them commit."""

    def both(label: str) -> str:
        with transaction.atomic():
            Written.objects.create(label=label, run=0, fence=0)
            result = job.enqueue("k", label=label)
            Written.objects.create(label=label, run=int(result.id), fence=0)
        return str(result.id)

    for _ in range(5):
        assert len(set(race(lambda: both("a"), lambda: both("b"), lambda: both("c")))) == 1
        assert control.cancel(JobRun.objects.filter(status="READY").values_list("pk", flat=True)).changed
    assert Written.objects.count() == 5 * 3 * 2
    assert JobRun.objects.count() == 5


@several_writers
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_enqueue_waits_for_a_transaction_that_has_the_key(store: Store, end: str) -> None:
    """The key is taken, not committed: the second transaction waits, then finds a twin or makes its own run."""
    answers: list[str] = []

    def second() -> None:
        with transaction.atomic():
            Written.objects.create(label="second", run=0, fence=0)
            answers.append(once.enqueue("k", label="second").id)

    thread = threading.Thread(target=lambda: aside(second))
    with transaction.atomic():
        first = once.enqueue("k", label="first")
        thread.start()
        thread.join(0.3)
        assert not answers
        transaction.set_rollback(end == "rollback")
    thread.join(10)
    assert Written.objects.filter(label="second").exists()
    assert (answers == [first.id]) == (end == "commit")
    assert JobRun.objects.count() == 1


def test_an_expired_run_that_waits_is_no_twin(store: Store) -> None:
    first = once.using(expires=3600).enqueue("k")
    change(row(first), expires_at="2001-01-01T00:00Z")
    second = once.enqueue("k")
    assert second.id != first.id
    assert (row(first).status, row(first).reason) == ("CANCELLED", "expired")


def test_enqueue_many_finds_twins_within_the_call_and_before_it(store: Store, journal: Said) -> None:
    before = once.enqueue("k3", label="before")
    calls = [{"key": f"k{n % 1500}", "label": str(n)} for n in range(2000)]
    results = once.enqueue_many(calls)
    assert [result.id for result in results[:500]] == [result.id for result in results[1500:]]
    assert results[3].id == before.id
    assert JobRun.objects.count() == 1500


def test_a_former_name_of_the_job_counts(store: Store) -> None:
    from groupjobs.ledger import Batch, insert_once

    lines = [("g", "[]", "{}", "k")]
    [old] = insert_once(Batch("default", "old.name", lines), "skip", ["old.name"])
    [new] = insert_once(Batch("default", "new.name", lines), "skip", ["new.name", "old.name"])
    assert (new.pk, new.duplicate) == (old.pk, True)
