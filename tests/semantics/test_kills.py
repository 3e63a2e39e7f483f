"""Hard time limits, and cancels by force: a process is killed, and only the run that it was about is concerned."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from groupjobs import control, recovery
from groupjobs.compat import TaskResultStatus
from groupjobs.models import JobGroup, JobRun
from groupjobs.store import Consumer, Lease, Store, store_for
from groupjobs.store.keys import line_name
from groupjobs.watchdog.home import Home, Killed
from groupjobs.watchdog.processes import Process
from groupjobs.worker import aftermath
from project.embedded import EmbeddedValkey
from tests.conftest import StartWorker
from tests.core.rows import QUEUE, again, running
from tests.core.serving import drain, reopen
from tests.semantics.jobs import deaf, hard_limited, in_time, stops_its_group
from tests.semantics.seen import ended, outcomes, row
from tests.servers.waiting import wait_until

Said = Callable[[], list[list[Any]]]


# --- hard time limits


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


def test_a_run_that_its_process_had_when_it_was_killed_for_another_pays_nothing(store: Store, journal: Said) -> None:
    run = running(alone=True, max_losses=0, consumer="n1", worker="here:1:x")
    consumer = Consumer("n1", "here:1:x", 1)
    store.step(consumer, 1, 0)
    store.keep(consumer, 1, [Lease(run.pk, line_name(run.group, run.pk), 0, 1, run.fence, 1)])
    store.reap(worker=consumer.worker, consumer="n1", interrupted=True)
    drain()
    run = again(run)
    assert (run.status, run.losses, run.attempts) == ("SUCCEEDED", 0, 1)


# --- the aftermath: what the worker itself knows of its kills, whatever Redis says


@pytest.fixture
def home() -> Iterator[Home]:
    made = Home.make()
    yield made
    made.remove()


def killed(home: Home, run: JobRun, *, over: bool) -> None:
    """The watchdog has killed the process that had this run."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        start = Process(process.pid).start
    word = Killed(queue=QUEUE, pid=process.pid, start=start, run=run.pk, fence=run.fence, over=over)
    home.killed.put(run.consumer, word)


def test_a_limit_that_is_over_is_no_loss_although_redis_forgot(
    short_ttl: None, store: Store, valkey: EmbeddedValkey, home: Home
) -> None:
    run = running(alone=True, time_limit=1.0, max_attempts=2, max_losses=0, consumer="n1")
    killed(home, run, over=True)
    valkey.flush()
    aftermath.settle(home)
    reopen()
    recovery.recover()
    assert (again(run).status, again(run).failures, again(run).losses) == ("READY", 1, 0)
    assert outcomes(run) == ["timed_out"]
    assert home.killed.all() == {}
    entry = store.snapshot([(run.pk, line_name(run.group, run.pk))]).entries[run.pk]
    assert entry.wait_ms > 0, "it waits for its back-off"


@pytest.mark.parametrize("asked", [True, False])
def test_a_kill_by_force_is_no_loss_although_redis_forgot(
    short_ttl: None, store: Store, valkey: EmbeddedValkey, home: Home, asked: bool
) -> None:
    """Of the run that was to be cancelled, and of another one that the process had by then."""
    run = running(alone=True, max_losses=0, consumer="n1")
    if asked:
        control.cancel([run.pk], force=True)
    killed(home, run, over=False)
    valkey.flush()
    aftermath.settle(home)
    reopen()
    recovery.recover()
    assert again(run).losses == 0
    assert (again(run).status, outcomes(run)) == (("CANCELLED", ["cancelled"]) if asked else ("READY", ["lost"]))


def test_the_aftermath_touches_no_other_attempt_and_no_living_process(
    store: Store, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = running(fence=40, alone=True, time_limit=1.0, max_losses=0, consumer="n1")
    killed(home, old, over=True)
    taken = running(fence=41, alone=True, consumer="n2")
    JobRun.objects.filter(pk=old.pk).update(fence=44, consumer="n3")
    aftermath.settle(home)
    assert [again(run).status for run in (old, taken)] == ["RUNNING", "RUNNING"]
    assert home.killed.all() == {}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        start = Process(process.pid).start
        home.killed.put("n2", Killed(queue=QUEUE, pid=process.pid, start=start, run=0, fence=0, over=False))
        monkeypatch.setattr(aftermath, "DYING", 0.1)
        aftermath.settle(home)
        assert again(taken).status == "RUNNING"
        assert list(home.killed.all()) == ["n2"], "it is looked at again"


@pytest.mark.celery
def test_a_hard_limit_is_no_loss_when_redis_is_flushed_at_the_kill(
    start_worker: StartWorker, journal: Said, valkey: EmbeddedValkey
) -> None:
    """Flushed all the time, until the row has moved: whatever Redis was told of the kill is gone."""
    start_worker(concurrency=1, groupjobs={"WORKER_TTL": 2})
    result = hard_limited.enqueue("a", times=1)
    wait_until(journal, 30)

    def moved() -> bool:
        valkey.flush()
        return row(result).status != "RUNNING"

    wait_until(moved, 30)
    assert (row(result).failures, row(result).losses, outcomes(row(result))) == (1, 0, ["timed_out"])
    wait_until(lambda: ended(result), 30)
    assert (row(result).status, row(result).losses) == ("SUCCEEDED", 0)
