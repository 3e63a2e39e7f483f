"""The same run twice at once, or an outcome counted twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import bench.__main__ as bench_command
from bench import drain as benchmark
from bench.world import GaveUp
from groupjobs import control, ledger, recovery
from groupjobs.models import JobRun
from groupjobs.signals import run_begun
from groupjobs.store import Outcome, Store
from tests.core.ghosts import begin, live, reserve, row, someone
from tests.core.rows import QUEUE, change
from tests.core.serving import Watched, drain, ended, pk_of, serve, serving, statuses, traces
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until
from tests.traps.leaks import two

pytestmark = pytest.mark.django_db(transaction=True)

Journal = Callable[[], list[list[Any]]]


# --- the benchmark


def test_b6_the_benchmark_counts_exactly(store: Store) -> None:
    with serving():
        assert benchmark.grouped(jobs.noop, 100, 10).count == 100


def test_b6_a_benchmark_that_misses_one_gives_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def loses_another(run: Any, **_: Any) -> None:
        JobRun.objects.exclude(pk=run.id).filter(status="READY").order_by("-pk")[:1].get().delete()
        run_begun.disconnect(loses_another)

    run_begun.connect(loses_another)
    try:
        with serving(), pytest.raises(GaveUp, match="100 enqueued, 99 succeeded"):
            benchmark.grouped(jobs.noop, 100, 10)
    finally:
        run_begun.disconnect(loses_another)

    def measure(*_: Any) -> None:
        raise GaveUp("100 enqueued, 99 succeeded")

    monkeypatch.setattr(bench_command, "_measure", measure)
    monkeypatch.setattr("sys.argv", ["bench"])
    assert bench_command.main() == 1


# --- a doubled bell


def test_b9_a_doubled_bell_makes_two_consumers_with_leases_of_their_own(
    store: Store, journal: Journal, gate: Path
) -> None:
    """Both executions are of one worker and one process."""
    runs = [jobs.waits.enqueue(label=label, gate=str(gate), group=label) for label in "ab"]
    with Watched() as watched, serving(watched=watched), serving(watched=watched):
        wait_until(lambda: len(journal()) == 2)
        seen = store.overview().consumers
        assert len({consumer.nonce for consumer in seen}) == 2
        assert [(consumer.worker, consumer.leases) for consumer in seen] == [(watched.worker, 1)] * 2
        entries = store.snapshot([(pk_of(run), label) for run, label in zip(runs, "ab", strict=True)]).entries
        assert {entry.consumer for entry in entries.values()} == {consumer.nonce for consumer in seen}
        gate.touch()
        wait_until(lambda: ended(runs))
    assert Counter(map(tuple, journal())) == {(label, word): 1 for label in "ab" for word in ("begins", "ends")}
    assert traces(store) == []


# --- recovery reads rows first, then Redis


def between_the_readings(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Whatever recovery reads first of rows and Redis: `act` comes before it reads the other."""
    read: list[str] = []
    page, snapshot = ledger.live_page, Store.snapshot

    def note(what: str) -> None:
        read.append(what)
        if len(set(read)) == 2 and len(read) == 2:
            act()

    def live_page(*args: Any) -> Any:
        note("rows")
        return page(*args)

    def snapshot_of(self: Store, runs: Any) -> Any:
        if runs:
            note("redis")
        return snapshot(self, runs)

    monkeypatch.setattr(ledger, "live_page", live_page)
    monkeypatch.setattr(Store, "snapshot", snapshot_of)


def test_b10_a_run_that_begins_between_the_two_readings_is_not_taken_for_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, consumer = two(), someone()
    live(store, consumer)
    fences: list[int] = []

    def begins() -> None:
        reservations = reserve(store, consumer, 1)
        begin(consumer, reservations)
        fences.append(reservations[0].fence)

    between_the_readings(monkeypatch, begins)
    report = recovery.recover()
    assert fences, "it began in between"
    assert report.moved() == 0
    assert (row(runs[0]).status, row(runs[0]).fence, row(runs[0]).losses) == ("RUNNING", fences[0], 0)
    assert store.step(consumer, 2, 0, [Outcome(pk_of(runs[0]), fences[0], "done")]).stale == ()


def test_b10_a_run_that_ends_between_the_two_readings_stays_ended(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row says RUNNING when it is read, and Redis knows nothing of it when it is asked."""
    runs, consumer = two(), someone()
    live(store, consumer)
    [reservation] = reserve(store, consumer, 1)
    begin(consumer, [reservation])

    def ends() -> None:
        change(row(runs[0]), status="SUCCEEDED")
        store.step(consumer, 2, 0, [Outcome(reservation.run, reservation.fence, "done")])

    between_the_readings(monkeypatch, ends)
    assert recovery.recover().moved() == 0
    assert (row(runs[0]).status, row(runs[0]).losses, row(runs[0]).attempt_log.count()) == ("SUCCEEDED", 0, 0)


# --- what a person does to a run that executes


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


DEEDS: dict[str, Callable[[Store, JobRun], object]] = {
    "cancel": lambda _, run: control.cancel([run.pk]),
    "cancel twice": lambda _, run: [control.cancel([run.pk]) for _ in range(2)],
    "retry": lambda _, run: control.retry([run.pk]),
    "retry as new": lambda _, run: control.retry([run.pk], as_new=True),
    "at once": lambda _, run: control.reschedule([run.pk], None),
    "later": lambda _, run: control.reschedule([run.pk], soon(3600)),
    "skip": lambda _, run: control.skip_head(run.queue, run.group),
    "hold and resume": lambda _, run: (control.hold(QUEUE, "g"), control.resume(QUEUE, "g")),
    "publish again": lambda *_: recovery.recover(),
    "withdraw": lambda store, run: store.withdraw([(run.pk, run.group, run.life)]),
    "drop": lambda store, run: store.drop([(run.pk, run.group, run.fence, run.life)]),
    "abandon": lambda *_: recovery.recover(recovery.Scope(abandon=True)),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_a8_whatever_is_done_to_a_run_that_executes_its_group_moves_on(
    deed: str, store: Store, journal: Journal, gate: Path
) -> None:
    first = jobs.waits.enqueue(label="A", gate=str(gate))
    second = jobs.note.enqueue(label="B")
    with Watched() as watched, serving(watched=watched):
        wait_until(journal)
        DEEDS[deed](store, row(first))
        serve()
        assert (row(first).status, statuses([second])) == ("RUNNING", ["READY"])
        gate.touch()
        wait_until(lambda: ended([first, second]))
    assert journal() == [["A", "begins"], ["A", "ends"], ["B"]]
    assert (row(first).attempts, row(first).losses, row(first).life) == (1, 0, 1)
    drain()
    assert traces(store) == []
