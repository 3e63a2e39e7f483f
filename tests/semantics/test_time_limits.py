from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupjobs import control, recovery
from groupjobs.compat import TaskResult, TaskResultStatus
from groupjobs.models import JobGroup, JobRun
from groupjobs.store import Consumer, Lease, Store, store_for
from groupjobs.store.keys import line_name
from tests.conftest import StartWorker
from tests.core.rows import again, running
from tests.core.serving import drain
from tests.jobsapp.models import Written
from tests.semantics.jobs import (
    awaits_briefly,
    awaits_for_ever,
    deaf,
    hard_limited,
    in_time,
    softly_limited,
    stops_its_group,
    tidies_up,
    writes_for_ever,
)
from tests.servers.waiting import wait_until

Said = Callable[[], list[list[Any]]]


def row(result: TaskResult[..., Any]) -> JobRun:
    return JobRun.objects.get(pk=result.id)


def outcomes(run: JobRun) -> list[str]:
    return list(run.attempt_log.order_by("fence").values_list("outcome", flat=True))


def ended(*results: TaskResult[..., Any]) -> bool:
    return all(row(result).finished_at for result in results)


# --- soft


def test_a_soft_limit_is_a_failed_attempt(store: Store, journal: Said) -> None:
    again_result = softly_limited.enqueue("a", times=1)
    for_ever = softly_limited.enqueue("b", times=9)
    drain()
    good, bad = row(again_result), row(for_ever)
    assert (good.status, good.failures, good.losses, outcomes(good)) == ("SUCCEEDED", 1, 0, ["timed_out"])
    assert (bad.status, bad.failures, bad.losses, outcomes(bad)) == ("FAILED", 2, 0, ["timed_out"] * 2)
    for_ever.refresh()
    assert for_ever.errors[0].exception_class.__name__ == "SoftTimeLimit"


def test_a_handler_may_tidy_up_and_succeed(store: Store, journal: Said) -> None:
    result = tidies_up.enqueue("a")
    drain()
    assert (row(result).status, journal()) == ("SUCCEEDED", [["tidy", "a"]])


def test_an_atomic_run_is_rolled_back(store: Store) -> None:
    result = writes_for_ever.enqueue("a")
    drain()
    assert (row(result).status, outcomes(row(result))) == ("FAILED", ["timed_out"])
    assert not Written.objects.exists()


def test_a_coroutine_is_interrupted_where_it_waits(store: Store) -> None:
    waiting, own = awaits_for_ever.enqueue("a"), awaits_briefly.enqueue("b")
    drain()
    assert (row(waiting).status, outcomes(row(waiting))) == ("FAILED", ["timed_out"])
    assert (row(own).status, row(own).result) == ("SUCCEEDED", "its own timeout")


# --- hard


@pytest.mark.celery
def test_a_hard_limit_kills_the_child_and_is_no_loss(start_worker: StartWorker, journal: Said) -> None:
    """Its handlers hold the GIL, and `max_losses=0` would abandon them at their first loss."""
    start_worker(concurrency=1)
    once, always = hard_limited.enqueue("a", times=1), hard_limited.enqueue("b", times=9)
    held, behind = stops_its_group.enqueue("c", group="h"), in_time.using(group="h").enqueue("d")
    other = in_time.enqueue("e")
    wait_until(lambda: ended(once, always, held, other), 60)
    assert (row(once).status, row(once).failures, row(once).losses) == ("SUCCEEDED", 1, 0)
    assert (row(always).status, row(always).failures, row(always).losses) == ("FAILED", 2, 0)
    assert [outcomes(row(result)) for result in (once, always)] == [["timed_out"], ["timed_out"] * 2]
    assert [line[1] for line in journal() if line[1] in "ab"] == ["a", "a", "b", "b"]
    always.refresh()
    assert always.status == TaskResultStatus.FAILED
    assert always.errors[0].exception_class.__name__ == "TimedOut"
    assert (row(held).status, row(behind).status) == ("FAILED", "READY")
    assert JobGroup.objects.get(group="h").held


@pytest.mark.celery
def test_a_run_that_ends_in_time_leaves_no_deadline(start_worker: StartWorker, journal: Said) -> None:
    worker = start_worker(concurrency=1)
    results = [in_time.enqueue(str(n)) for n in range(20)]
    wait_until(lambda: ended(*results), 30)
    assert "is killed" not in worker.text()
    assert {row(result).status for result in results} == {"SUCCEEDED"}


def test_recovery_takes_an_overdue_attempt_for_a_failure(store: Store) -> None:
    """The watchdog has reaped it; recovery comes to its row before any consumer does."""
    run = running(alone=True, time_limit=1.0, max_attempts=2, max_losses=0)
    consumer = Consumer("n1", "here:1:x", 1)
    store.step(consumer, 1, 0)
    store.keep(consumer, 1, [Lease(run.pk, line_name(run.group, run.pk), 0, 1, run.fence, 1)])
    store.reap(worker=consumer.worker, consumer="n1", overdue=[(run.pk, run.fence)])
    report = recovery.recover(recovery.Scope(queue="default"))
    run = again(run)
    assert (run.status, run.failures, run.losses, outcomes(run)) == ("READY", 1, 0, ["timed_out"])
    assert report.counts["released"] == 1
    entry = store.snapshot([(run.pk, line_name(run.group, run.pk))]).entries[run.pk]
    assert entry.wait_ms > 0, "it waits for its back-off"


def test_a_mark_of_another_lease_counts_for_nothing(store: Store) -> None:
    run = running(alone=True, time_limit=1.0, max_losses=2)
    consumer = Consumer("n1", "here:1:x", 1)
    store.step(consumer, 1, 0)
    store.keep(consumer, 1, [Lease(run.pk, line_name(run.group, run.pk), 0, 1, run.fence, 1)])
    store.reap(worker=consumer.worker, consumer="n1", overdue=[(run.pk, run.fence - 1)])
    recovery.recover(recovery.Scope(queue="default"))
    assert (again(run).failures, again(run).losses, outcomes(run)) == (0, 1, ["lost"])


# --- cancel by force


@pytest.mark.celery
def test_cancel_by_force_kills_what_does_not_listen(start_worker: StartWorker, journal: Said) -> None:
    worker = start_worker(concurrency=1)
    result = deaf.enqueue("a")
    wait_until(journal, 30)
    child = worker.children()
    assert control.cancel([int(result.id)]).changed
    assert str(control.cancel([int(result.id)])) == "0 changed, 1 skipped: asked already"
    assert control.cancel([int(result.id)], force=True).changed
    wait_until(lambda: ended(result), 30)
    run = row(result)
    assert (run.status, run.reason, run.losses, outcomes(run)) == ("CANCELLED", "requested", 0, ["cancelled"])
    assert not set(child) & set(worker.children())
    after = in_time.enqueue("b")
    wait_until(lambda: ended(after), 30)
    store = store_for("default")
    wait_until(lambda: store.client.scard(f"{store.base}:kills") == 0, 20, "a beat has taken the order back")


def test_recovery_ends_a_lost_run_that_was_to_be_cancelled(store: Store) -> None:
    run = running(alone=True, max_losses=0)
    assert control.cancel([run.pk]).changed
    recovery.recover(recovery.Scope(queue="default"))
    run = again(run)
    assert (run.status, run.reason, run.losses, outcomes(run)) == ("CANCELLED", "requested", 0, ["cancelled"])
