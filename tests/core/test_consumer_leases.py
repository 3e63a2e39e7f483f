"""Long runs, stops, the guard, and leases that are lost."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.test import override_settings

from groupjobs import job, ledger
from groupjobs.consumer import guard
from groupjobs.consumer import serving as serving_module
from groupjobs.models import JobRun
from groupjobs.store import Store
from tests.core.ghosts import row
from tests.core.rows import attempts, values
from tests.core.serving import drain, ended, new_worker, pk_of, serve, serving, statuses, traces
from tests.core.told import labels
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
Journal = Callable[[], list[list[Any]]]
Batches = Callable[[], None]


# --- long runs, stops, and the guard


def test_a_long_run_gives_the_rest_of_its_batch_back_at_once(
    store: Store, batches: Batches, journal: Journal, gate: Path
) -> None:
    assert guard.LOOK + guard.LONG < 0.4, "seconds"
    batches()
    long_run = jobs.waits.enqueue(label="long", gate=str(gate), group="long")
    behind = jobs.note.enqueue(label="behind", group="long")
    others = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n}"} for n in range(20)])
    with serving():
        wait_until(lambda: ["long", "begins"] in journal(), pause=0.002)
        mine = JobRun.objects.filter(pk__in=[pk_of(run) for run in others], status="RUNNING")
        waited = mine.count()
        wait_until(lambda: not mine.exists(), pause=0.005, what="the rest is given back while the long run goes on")
        assert waited > 0
        drain(lambda: ended(others), timeout=5)
        assert statuses([long_run, behind]) == ["RUNNING", "READY"]
        gate.touch()
        wait_until(ended)
    assert [row(run).attempts for run in others] == [1] * 20
    assert {row(run).losses for run in (*others, long_run, behind)} == {0}
    assert labels(journal)[-1] == "behind"


def test_i3_a_consumer_that_is_asked_to_stop_gives_back_what_it_has_not_started(
    store: Store, batches: Batches, journal: Journal
) -> None:
    batches()
    runs = jobs.note.enqueue_many([{"label": str(n), "group": f"x{n}"} for n in range(40)])
    serve(stop=lambda: len(journal()) >= 3)
    assert len(journal()) == 3
    assert Counter(statuses(runs)) == {"SUCCEEDED": 3, "READY": 37}
    assert {(row(run).losses, row(run).failures) for run in runs} == {(0, 0)}
    assert sum(row(run).attempts for run in runs) == 3
    drain()
    assert sorted(int(label) for label in labels(journal)) == list(range(40))


def test_a_consumer_ends_after_its_time_and_leaves_the_rest_ready(store: Store, journal: Journal) -> None:
    runs = jobs.note.enqueue_many([{"label": str(n)} for n in range(5000)])
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "CONSUMER_SECONDS": 0.3}):
        serve()
    done = len(journal())
    assert 0 < done < 5000
    assert Counter(statuses(runs)) == {"SUCCEEDED": done, "READY": 5000 - done}
    serve(stop=lambda: len(journal()) >= done + 10)
    assert labels(journal) == [str(n) for n in range(done + 10)]


def test_a_give_back_that_failed_is_made_up_for(
    store: Store, batches: Batches, journal: Journal, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away just when the guard gives the rest back, until the long run has ended."""
    batches()
    jobs.waits.enqueue(label="long", gate=str(gate), group="long")
    others = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n}"} for n in range(100)])
    tried: list[int] = []
    real = ledger.settle

    def failing(settlements: Any) -> Any:
        back = any(settlement.transition == "give_back" for settlement in settlements)
        if back and threading.current_thread().name == "groupjobs-guard":
            tried.append(1)
            gate.touch()
            raise OperationalError("the database is away")
        return real(settlements)

    monkeypatch.setattr(ledger, "settle", failing)
    calls = counted_steps(monkeypatch)
    worker = new_worker()
    store.beat(worker, 1, {})
    serve(worker)
    assert tried
    assert statuses(others) == ["SUCCEEDED"] * 100
    assert sorted(labels(journal)[2:]) == sorted(f"x{n}" for n in range(100))
    assert {row(run).losses for run in others} == {0}
    assert len(calls) < 100


# --- leases that are lost


def test_b2_a_consumer_whose_worker_was_taken_for_dead_changes_nothing_more(
    store: Store, journal: Journal, gate: Path
) -> None:
    result = jobs.first_waits.enqueue(label="A", gate=str(gate))
    zombie = new_worker()
    with serving(zombie):
        wait_until(lambda: ["A", "first"] in journal())
        old = row(result).fence
        store.reap(worker=zombie)
        drain(lambda: ended([result]))
        won = row(result)
        assert (won.status, won.result, won.losses) == ("SUCCEEDED", "again", 1)
        assert won.fence > old
        before = values(won)
        gate.touch()
    assert values(won) == before
    assert won.attempts == 2
    assert attempts(won) == [(old, "lost")]
    assert traces(store) == []


def test_a_handler_whose_lease_is_lost_is_interrupted(store: Store, journal: Journal, gate: Path) -> None:
    result = jobs.first_waits.enqueue(label="A", gate=str(gate))
    zombie = new_worker()
    with serving(zombie) as thread:
        wait_until(lambda: ["A", "first"] in journal())
        store.reap(worker=zombie)
        drain(lambda: ended([result]))
        wait_until(lambda: not _waits(thread, journal), timeout=5, what="LeaseLost was raised at the gate")
    assert ["A", "first ends"] not in journal()
    assert row(result).result == "again"


def _waits(thread: Any, journal: Journal) -> bool:
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        if frame.f_code.co_name == "wait_at":
            return True
        frame = frame.f_back
    return False


def test_nothing_starts_that_was_lost_in_the_meantime(
    store: Store, batches: Batches, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the guard's help, a lease that was not confirmed for a while is confirmed before its handler starts."""
    monkeypatch.setattr(guard, "LONG", 1e9)
    monkeypatch.setattr(guard, "KEEP", 1e9)
    batches()
    jobs.loses_its_worker.using(group="first").enqueue(label="loses")
    runs = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n}"} for n in range(20)])
    serve()
    assert labels(journal).count("loses") == 1
    assert [label for label in labels(journal) if label != "loses"] == []
    assert not set(statuses(runs)) & {"SUCCEEDED", "FAILED"}
    monkeypatch.undo()
    JobRun.objects.filter(job=jobs.loses_its_worker.job_name).update(job=jobs.note.job_name)
    drain()
    assert {row(run).losses for run in runs} == {0}
    assert Counter(statuses(runs)) == {"SUCCEEDED": 20}


@job(group="{group}", soft_time_limit=0.3)
def stops_in_a_query(group: str = "g") -> None:
    """Where an interrupt may come: the query is sent, its answer is not read yet."""
    connection.ensure_connection()
    connection.connection.pgconn.send_query(b"select 1")
    while True:
        time.sleep(0.005)


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.usefixtures("postgres_server")
def test_an_interrupt_in_the_middle_of_a_query_costs_a_connection_and_no_outcome(
    store: Store, journal: Journal, atomic: bool
) -> None:
    before = jobs.note.enqueue(label="A", group="g")
    interrupted = stops_in_a_query.using(atomic=atomic).enqueue()
    after = jobs.note.enqueue(label="B", group="g")
    serve()
    assert statuses([before, interrupted, after]) == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert attempts(row(interrupted)) == [(row(interrupted).fence, "timed_out")]
    assert labels(journal) == ["A", "B"]


def test_a_run_that_was_lost_before_it_began_costs_nothing(
    store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker was taken for dead while the consumer waited for the database."""
    worker, load = new_worker(), ledger.load

    def late(queue: str, runs: Sequence[int]) -> Any:
        store.reap(worker=worker)
        return load(queue, runs)

    monkeypatch.setattr(ledger, "load", late)
    monkeypatch.setattr(serving_module, "UNCONFIRMED", -1.0)
    result = jobs.note.using(max_losses=0).enqueue(label="A")
    serve(worker)
    assert journal() == []
    assert (row(result).status, row(result).losses) == ("READY", 0)
    monkeypatch.undo()
    drain()
    assert (row(result).status, row(result).losses) == ("SUCCEEDED", 0)
    assert attempts(row(result)) == []


def counted_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    real = Store.call

    def call(self: Store, verb: str, *args: Any) -> Any:
        calls.append(verb)
        return real(self, verb, *args)

    monkeypatch.setattr(Store, "call", call)
    return calls
