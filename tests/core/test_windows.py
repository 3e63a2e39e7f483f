"""Every crash window: a process dies at a named point, and what it leaves has one meaning, whoever notices."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from groupjobs import control, recovery
from groupjobs.models import JobRun
from groupjobs.store import Store, store_for
from tests.core.dying import dies, survives
from tests.core.ghosts import row
from tests.core.rows import QUEUE, again, attempts
from tests.core.serving import drain, ended, known, new_worker, pk_of, reopen, serve, statuses, traces
from tests.core.told import labels
from tests.jobsapp import jobs
from tests.jobsapp.models import Written
from tests.servers.waiting import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

Journal = Callable[[], list[list[Any]]]
Death = Callable[[str], None]


def counted(run: Any) -> tuple[int, int, int]:
    found = row(run)
    return found.attempts, found.failures, found.losses


# --- who notices the death


def reaped(store: Store, worker: str) -> None:
    """Its watchdog."""
    store.reap(worker=worker)


def silent(store: Store, worker: str) -> None:
    """Nobody but time: the next step after a TTL."""


def recovered(store: Store, worker: str) -> None:
    """Recoveries, until the silent worker is past its TTL."""
    wait_until(lambda: recovery.recover().moved() or not store.overview().workers)


@pytest.fixture(params=[reaped, silent, recovered], ids=lambda how: how.__name__)
def death(request: pytest.FixtureRequest, short_ttl: None, store: Store) -> Death:
    """How the death of a worker becomes known."""
    return partial(request.param, store)


def served_by(worker: str) -> Callable[[], None]:
    def serve_and_beat() -> None:
        store_for(QUEUE, "beat").beat(worker, 1, {})
        serve(worker)

    return serve_and_beat


# --- INSERT and publish


def test_died_before_the_commit(store: Store) -> None:
    def enqueue() -> None:
        with transaction.atomic():
            jobs.note.enqueue(label="A")

    dies(enqueue, "after", "groupjobs.ledger.insert")
    assert JobRun.objects.count() == 0
    assert traces(store) == []


def test_d4_died_between_insert_and_publish(store: Store, journal: Journal) -> None:
    dies(partial(jobs.note.enqueue, label="A"), "before", "groupjobs.moves.publishing.publish")
    run = JobRun.objects.get()
    assert (run.status, run.unpublished) == ("READY", False)
    assert known(store, [run]) == set()
    assert recovery.recover().counts["republished"] == 1
    drain()
    assert journal() == [["A"]]
    assert counted(run) == (1, 0, 0)
    assert traces(store) == []


def test_d4_a_run_behind_one_whose_publication_was_lost_waits_for_it(store: Store, journal: Journal) -> None:
    """No recovery: the consumer itself sees what is ahead."""
    dies(partial(jobs.note.enqueue, label="A"), "before", "groupjobs.moves.publishing.publish")
    jobs.note.enqueue(label="B")
    drain()
    assert journal() == [["A"], ["B"]]


def test_died_after_publish_and_before_the_bell(store: Store, journal: Journal) -> None:
    dies(partial(jobs.note.enqueue, label="A"), "before", "groupjobs.bell.ring")
    assert known(store, list(JobRun.objects.all())) == {JobRun.objects.get().pk}
    assert store.tick("", 0).bells == 0, "the first bell may still be on its way"
    wait_until(lambda: store.tick("", 0).bells, what="it is rung again")
    drain()
    assert journal() == [["A"]]


def test_recovery_rings_a_bell_that_was_lost(store: Store) -> None:
    dies(partial(jobs.note.enqueue, label="A"), "before", "groupjobs.bell.ring")
    wait_until(lambda: recovery.recover().counts["rung"], what="it is rung again")


# --- reserve and begin


def test_died_between_reserve_and_begin(death: Death, store: Store, journal: Journal) -> None:
    reserved_and_not_begun("groupjobs.ledger.begin", death, journal)
    assert traces(store) == []


def test_died_between_reserve_and_load(store: Store, journal: Journal) -> None:
    reserved_and_not_begun("groupjobs.ledger.load", partial(reaped, store), journal)
    assert traces(store) == []


def reserved_and_not_begun(point: str, death: Death, journal: Journal) -> None:
    first, second = jobs.note.enqueue_many([{"label": label} for label in "AB"])
    worker = new_worker()
    dies(served_by(worker), "before", point)
    assert (row(first).status, row(first).fence) == ("READY", 0)
    death(worker)
    assert counted(first) == (0, 0, 0)
    drain()
    assert journal() == [["A"], ["B"]]
    assert [counted(run) for run in (first, second)] == [(1, 0, 0)] * 2
    assert attempts(row(first)) == []


# --- begin and settle


def test_d1_died_between_begin_and_settle_alone(death: Death, store: Store, journal: Journal) -> None:
    """Whether its handler had run nobody can know: a loss, and it runs again in its place."""
    first, second = jobs.note.enqueue_many([{"label": label} for label in "AB"])
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.moves.settle")
    lost = row(first)
    assert (lost.status, lost.alone) == ("RUNNING", True)
    death(worker)
    drain()
    assert journal() == [["A"], ["A"], ["B"]]
    assert counted(first) == (2, 0, 1)
    assert counted(second) == (1, 0, 0)
    assert attempts(row(first)) == [(lost.fence, "lost")]
    [log] = row(first).attempt_log.all()
    assert (log.worker, log.started_at) == (worker, lost.last_attempted_at)
    assert traces(store) == []


def test_died_between_begin_and_settle_in_a_batch(
    death: Death, store: Store, journal: Journal, batches: Callable[[], None]
) -> None:
    """A batch of several: each is suspect, reserved alone next time, and none pays."""
    batches()
    runs = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n}"} for n in range(10)])
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.moves.settle", number=4)
    lost = [run for run in runs if row(run).status == "RUNNING"]
    assert lost
    assert {row(run).alone for run in lost} == {False}
    logs = [(row(run).fence, "lost", row(run).last_attempted_at) for run in lost]
    death(worker)
    JobRun.objects.filter(pk__in=[pk_of(run) for run in lost]).update(
        job=jobs.tells_company.job_name, kwargs={"label": "alone"}
    )
    drain()
    assert [(row(run).result or [None])[0] for run in lost] == [True] * len(lost)
    assert [counted(run) for run in lost] == [(1, 0, 0)] * len(lost)
    assert [row(run).attempt_log.values_list("fence", "outcome", "started_at").get() for run in lost] == logs
    assert traces(store) == []


def test_d6_a_handler_that_kills_is_abandoned_and_its_mates_never_pay(
    short_ttl: None, store: Store, journal: Journal, batches: Callable[[], None]
) -> None:
    """A poison run in a batch kills max_losses + 2 processes at most."""
    batches()
    before = jobs.note.enqueue_many([{"label": "x", "group": f"x{n}"} for n in range(5)])
    poison = jobs.kills.using(max_losses=1).enqueue(label="P")
    behind = jobs.note.enqueue(label="behind")
    after = jobs.note.enqueue_many([{"label": "y", "group": f"y{n}"} for n in range(5)])
    deaths = 0
    while not ended([poison]):
        deaths += not survives(partial(serve, worker := new_worker()))
        store.reap(worker=worker)
        assert deaths <= 3
    drain()
    assert deaths == labels(journal).count("P") <= 3
    assert (row(poison).status, row(poison).reason, row(poison).losses) == ("ABANDONED", "too_many_losses", 2)
    assert [outcome for _, outcome in attempts(row(poison))].count("lost") == deaths
    for run in (*before, *after, behind):
        assert (row(run).status, row(run).losses) == ("SUCCEEDED", 0)
    assert traces(store) == []


def test_a_poison_run_is_noticed_by_everybody(death: Death, store: Store, journal: Journal) -> None:
    kills_as_often_as_it_may(1, death, journal)
    assert traces(store) == []


@pytest.mark.parametrize("most", [0, 2])
def test_d6_a_poison_run_kills_as_often_as_it_may(most: int, store: Store, journal: Journal) -> None:
    kills_as_often_as_it_may(most, partial(reaped, store), journal)
    assert traces(store) == []


def kills_as_often_as_it_may(most: int, death: Death, journal: Journal) -> None:
    poison = jobs.kills.using(max_losses=most).enqueue(label="P")
    behind = jobs.note.enqueue(label="B")
    until = time.monotonic() + 15
    while not ended([poison]):
        if not survives(partial(serve, worker := new_worker())):
            death(worker)
        assert time.monotonic() < until
    drain()
    assert labels(journal) == ["P"] * (most + 1) + ["B"]
    assert (row(poison).status, row(poison).reason, row(poison).losses) == ("ABANDONED", "too_many_losses", most + 1)
    assert statuses([behind]) == ["SUCCEEDED"]


def test_died_in_an_atomic_run_before_its_commit(store: Store, journal: Journal) -> None:
    run = jobs.writes.enqueue(label="A")
    worker = new_worker()
    dies(served_by(worker), "after", "groupjobs.ledger.settle")
    assert (row(run).status, Written.objects.count()) == ("RUNNING", 0)
    store.reap(worker=worker)
    drain()
    assert journal() == [["A"], ["A"]]
    assert counted(run) == (2, 0, 1)
    assert list(Written.objects.values_list("fence", flat=True)) == [row(run).fence]


def test_died_in_the_settling_transaction(store: Store, journal: Journal) -> None:
    """Nothing of it is committed: neither the outcome nor the attempt's log."""
    run = jobs.flaky.using(group="g").enqueue(label="A")
    jobs.note.enqueue(label="B")
    worker = new_worker()
    dies(served_by(worker), "after", "groupjobs.ledger.settle")
    assert (row(run).status, attempts(row(run))) == ("RUNNING", [])
    store.reap(worker=worker)
    drain()
    assert labels(journal) == ["A", "A", "B"]
    assert counted(run) == (2, 0, 1)


# --- the row is settled and Redis is not


def test_b5_died_between_the_rows_and_redis(death: Death, store: Store, journal: Journal) -> None:
    """The run has ended: its lease ends too, and the next is served."""
    ended_and_not_told(jobs.note, death, journal)
    assert traces(store) == []


@pytest.mark.parametrize("job", [jobs.writes, jobs.fails, jobs.gives_up], ids=["atomic", "failed", "cancelled"])
def test_died_between_the_rows_and_redis_in_another_way(job: Any, store: Store, journal: Journal) -> None:
    ended_and_not_told(job, partial(reaped, store), journal)
    assert traces(store) == []


def ended_and_not_told(job: Any, death: Death, journal: Journal) -> None:
    run = job.using(group="g").enqueue(label="A")
    jobs.note.enqueue(label="B")
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.store.Store.step", number=2)
    before = row(run)
    assert before.status in ("SUCCEEDED", "FAILED", "CANCELLED")
    death(worker)
    drain()
    assert labels(journal) == ["A", "B"]
    after = row(run)
    assert (after.status, after.fence, after.finished_at) == (before.status, before.fence, before.finished_at)
    assert counted(run)[2] == 0


def test_died_after_a_retry_was_written(store: Store, journal: Journal) -> None:
    """The row waits for its back-off, which Redis was not told: it is not started before, and loses nothing."""
    run = jobs.asks_again.using(group="g").enqueue(label="A", after=0.8)
    jobs.note.enqueue(label="B")
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.store.Store.step", number=2)
    due = row(run).run_after
    assert due is not None
    store.reap(worker=worker)
    drain()
    assert labels(journal) == ["A", "A", "B"]
    assert counted(run) == (2, 1, 0)
    second = row(run).last_attempted_at
    assert second is not None
    assert second >= due - timedelta(seconds=0.3)


def test_died_after_rows_were_given_back(store: Store, journal: Journal, batches: Callable[[], None]) -> None:
    batches()
    head = jobs.asks_again.using(group="g").enqueue(label="A", after=0.01)
    rest = jobs.note.enqueue_many([{"label": label} for label in "BC"])
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.store.Store.step", number=5)
    assert statuses([head, *rest]) == ["READY"] * 3
    store.reap(worker=worker)
    drain()
    assert labels(journal) == ["A", "A", "B", "C"]
    assert [counted(run) for run in (head, *rest)] == [(2, 1, 0), (1, 0, 0), (1, 0, 0)]


# --- holds and cancels


def test_died_before_redis_was_told_of_a_hold(store: Store, journal: Journal) -> None:
    run = jobs.fails.using(group="g", after_failure="hold").enqueue(label="A")
    behind = jobs.note.enqueue(label="B")
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.moves.holding.tell")
    assert row(run).status == "FAILED"
    store.reap(worker=worker)
    drain(lambda: store.snapshot([(pk_of(behind), "g")]).groups["g"].held_flag)
    serve()
    assert labels(journal) == ["A"]
    assert statuses([behind]) == ["READY"]


def test_died_before_the_rest_of_a_group_was_cancelled(store: Store, journal: Journal) -> None:
    """The failure is written and the group held; the cancellation goes on, and the group opens again."""
    run = jobs.fails.using(group="g", after_failure="cancel").enqueue(label="A")
    rest = jobs.note.enqueue_many([{"label": "B"}] * 3)
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.moves.holding.cancel_line")
    assert statuses([run, *rest]) == ["FAILED", "READY", "READY", "READY"]
    store.reap(worker=worker)
    recovery.recover()
    drain()
    assert statuses(rest) == ["CANCELLED"] * 3
    jobs.note.enqueue(label="C")
    drain()
    assert labels(journal) == ["A", "C"]


def test_died_before_redis_was_told_of_a_cancel(store: Store, journal: Journal) -> None:
    runs = jobs.note.enqueue_many([{"label": label} for label in "AB"])
    dies(partial(control.cancel, [pk_of(runs[0])]), "before", "groupjobs.store.Store.withdraw")
    assert statuses(runs) == ["CANCELLED", "READY"]
    drain()
    assert labels(journal) == ["B"]
    assert traces(store) == []


def test_died_before_redis_was_told_of_a_retry(store: Store, journal: Journal) -> None:
    run = jobs.fails.enqueue(label="A")
    drain()
    dies(partial(control.retry, [pk_of(run)]), "before", "groupjobs.store.Store.enqueue")
    assert (row(run).status, row(run).life) == ("READY", 2)
    assert recovery.recover().counts["republished"] == 1
    drain()
    assert labels(journal) == ["A", "A"]
    assert (row(run).status, row(run).life, row(run).attempts) == ("FAILED", 2, 1)


# --- Redis lost, and recovery itself dies


def test_died_and_redis_lost_everything(short_ttl: None, store: Store, journal: Journal) -> None:
    runs = jobs.note.enqueue_many([{"label": label} for label in "ABC"])
    other = jobs.flaky.using(group="x").enqueue(label="X", failures=0)
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.moves.settle")
    [lost] = JobRun.objects.filter(status="RUNNING")
    store.client.flushall()
    reopen()
    drain()
    assert [label for label in labels(journal) if label != "X"] in (["A", "A", "B", "C"], ["A", "B", "C"])
    assert {counted(run)[2] for run in (*runs, other) if pk_of(run) != lost.pk} == {0}
    assert again(lost.pk).losses == 1
    assert traces(store) == []


REBUILDING = ["groupjobs.ledger.mark_opened", "groupjobs.store.Store.enqueue", "groupjobs.store.Store.open"]


@pytest.mark.parametrize("point", REBUILDING)
def test_a_rebuild_that_dies_is_carried_on(point: str, short_ttl: None, store: Store, journal: Journal) -> None:
    jobs.note.enqueue_many([{"label": str(number)} for number in range(5)])
    store.client.flushall()
    dies(reopen, "before", point)
    reopen()
    drain()
    assert labels(journal) == [str(number) for number in range(5)]


@pytest.mark.parametrize(
    "point", ["groupjobs.moves.publish", "groupjobs.store.Store.reap", "groupjobs.reports.deliver"]
)
def test_a_recovery_that_dies_is_carried_on(point: str, store: Store, journal: Journal) -> None:
    first, second = jobs.note.enqueue_many([{"label": label} for label in "AB"])
    dies(partial(jobs.note.enqueue, label="C", group="x"), "before", "groupjobs.moves.publishing.publish")
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.moves.settle")
    store.client.hdel(f"{store.base}:consumers", row(first).consumer)  # unknown: a ghost at once
    dies(recovery.recover, "before", point)
    recovery.recover()
    drain()
    assert sorted(labels(journal)) == ["A", "A", "B", "C"]
    assert counted(first) == (2, 0, 1)
    assert counted(second) == (1, 0, 0)
    assert traces(store) == []


def test_a_lost_run_that_recovery_wrote_and_did_not_publish(store: Store, journal: Journal) -> None:
    """The loss is on the row and Redis still has the ghost's lease."""
    run = jobs.note.enqueue(label="A")
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.moves.settle")
    store.client.hdel(f"{store.base}:consumers", row(run).consumer)
    dies(recovery.recover, "before", "groupjobs.moves.losing.publish")
    assert (row(run).status, row(run).losses) == ("READY", 1)
    assert recovery.recover().counts["released"] == 1
    drain()
    assert counted(run) == (2, 0, 1)
    assert labels(journal) == ["A", "A"]
    assert traces(store) == []


# --- reports


def test_d9_died_in_a_hook(store: Store, journal: Journal) -> None:
    run = jobs.precious.enqueue(label="A")
    worker = new_worker()
    dies(served_by(worker), "before", "groupjobs.moves.settle")
    store.reap(worker=worker)
    dies(recovery.recover, "before", "groupjobs.ledger.acknowledge_report")
    assert row(run).status == "ABANDONED"
    assert row(run).abandon_reported_at is None
    assert ["report", pk_of(run), "too_many_losses"] in journal()
    JobRun.objects.update(report_after=None)  # its pause is over
    assert recovery.recover().counts["reported"] == 1
    assert row(run).abandon_reported_at is not None
    assert journal().count(["report", pk_of(run), "too_many_losses"]) == 2
