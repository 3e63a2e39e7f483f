"""`atomic=True`: a handler's own writes and its terminal row are one commit, under its fence."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from groupjobs.models import JobRun
from groupjobs.store import Store
from tests.core.ghosts import row
from tests.core.hearing import ends
from tests.core.rows import again, aside, attempts, reroute
from tests.core.serving import drain, ended, new_worker, pk_of, serving, statuses, traces
from tests.jobsapp import jobs
from tests.jobsapp.models import Written
from tests.servers.waiting import wait_until
from tests.servers.wire import Proxy

pytestmark = pytest.mark.django_db(transaction=True)

Journal = Callable[[], list[list[Any]]]
Batches = Callable[[], None]
several_writers = pytest.mark.skipif("connection.vendor == 'sqlite'", reason="SQLite has one writer at a time")


def written(result: Any) -> list[int]:
    """The fences under which a run's effects were committed."""
    return list(Written.objects.filter(run=pk_of(result)).order_by("id").values_list("fence", flat=True))


def test_writes_and_terminal_row_appear_together(store: Store, journal: Journal, gate: Path) -> None:
    result = jobs.writes_and_waits.enqueue(label="A", gate=str(gate))
    with serving():
        wait_until(lambda: ["A", "begins"] in journal())
        assert (row(result).status, written(result)) == ("RUNNING", [])
        gate.touch()
        wait_until(lambda: written(result))
        assert row(result).status == "SUCCEEDED"
        wait_until(ended)
    found = row(result)
    assert written(result) == [found.fence]
    assert (found.result, found.attempts) == ("A", 1)


def test_a_batch_of_atomic_runs(store: Store, journal: Journal, batches: Batches) -> None:
    batches()
    mixed = [
        (jobs.writes if number % 3 else jobs.note).enqueue(label=str(number), group=f"g{number % 4}")
        for number in range(60)
    ]
    drain()
    assert statuses(mixed) == ["SUCCEEDED"] * 60
    assert Written.objects.count() == 40
    assert {(entry.run, entry.fence) for entry in Written.objects.all()} == {
        (run.pk, run.fence) for run in JobRun.objects.filter(job=jobs.writes.job_name)
    }
    for group in range(4):
        said = [int(words[0]) for words in journal() if int(words[0]) % 4 == group]
        assert said == sorted(said)


def test_a_failed_attempt_s_writes_are_rolled_back(store: Store, journal: Journal) -> None:
    result = jobs.writes_and_fails.enqueue(label="A", failures=2)
    drain()
    found = row(result)
    assert (found.status, found.attempts, found.failures) == ("SUCCEEDED", 3, 2)
    assert written(result) == [found.fence]
    assert [outcome for _, outcome in attempts(found)] == ["failed", "failed"]


def test_an_integrity_error_at_commit_is_a_failed_attempt(store: Store, journal: Journal, batches: Batches) -> None:
    batches()
    result = jobs.breaks_at_commit.using(group="g").enqueue(label="A")
    after = jobs.note.enqueue(label="B")
    drain()
    found = row(result)
    assert (found.status, found.attempts, found.failures) == ("FAILED", 2, 2)
    assert (found.error or {})["class"] == "django.db.utils.IntegrityError"
    assert written(result) == []
    assert journal() == [["A"], ["A"], ["B"]]
    assert statuses([after]) == ["SUCCEEDED"]


@pytest.mark.parametrize(
    ("what", "status", "effects"),
    [("cancel", "CANCELLED", 0), ("hold", "READY", 0), ("retry", "SUCCEEDED", 1), ("bad result", "FAILED", 0)],
)
def test_every_other_end_rolls_back(what: str, status: str, effects: int, store: Store, journal: Journal) -> None:
    result = jobs.writes_and.using(group="g").enqueue(label="A", what=what)
    drain(lambda: journal() and row(result).status == status)
    assert len(written(result)) == effects
    assert written(result) in ([], [row(result).fence])


# --- inner blocks and hooks


def test_an_inner_block_may_be_rolled_back(store: Store, journal: Journal) -> None:
    result = jobs.nests.enqueue(label="A", inner="rolled back")
    drain()
    assert row(result).status == "SUCCEEDED"
    assert list(Written.objects.values_list("label", flat=True)) == ["A"]


def test_an_inner_block_that_is_left_open_commits_nothing(store: Store, journal: Journal, batches: Batches) -> None:
    batches()
    before = jobs.note.enqueue(label="before", group="x")
    result = jobs.nests.using(group="g").enqueue(label="A", inner="left open")
    after = jobs.writes.enqueue(label="B")
    drain()
    assert statuses([before, result, after]) == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert list(Written.objects.values_list("label", flat=True)) == ["B"]
    assert aside(lambda: again(pk_of(after)).status) == "SUCCEEDED"
    assert not connection.in_atomic_block


@pytest.mark.parametrize("hook", ["says", "raises"])
def test_what_follows_the_commit_does_not_undo_it(hook: str, store: Store, journal: Journal) -> None:
    result = jobs.nests.using(group="g", max_attempts=3).enqueue(label="A", hook=hook)
    jobs.note.enqueue(label="B")
    drain()
    assert (row(result).status, row(result).attempts) == ("SUCCEEDED", 1)
    assert written(result) == [row(result).fence]
    assert journal() == [["A"], ["committed", False] if hook == "says" else ["hook"], ["B"]]


# --- fences


@several_writers
def test_an_attempt_whose_fence_is_superseded_is_rolled_back(store: Store, journal: Journal, gate: Path) -> None:
    result = jobs.is_superseded_once.enqueue(label="A", gate=str(gate))
    drain()
    found = row(result)
    assert found.status == "SUCCEEDED"
    assert written(result) == [found.fence]
    assert journal() == [["A"], ["A"]]
    assert traces(store) == []


@several_writers
def test_b2_a_worker_taken_for_dead_leaves_no_writes(store: Store, journal: Journal, gate: Path) -> None:
    """Two attempts overlap; only the later one's effects are there."""
    result = jobs.writes_and_waits.enqueue(label="A", gate=str(gate))
    zombie = new_worker()
    with serving(zombie):
        wait_until(lambda: ["A", "begins"] in journal())
        store.reap(worker=zombie)
        with serving():
            wait_until(lambda: journal().count(["A", "begins"]) == 2)
            gate.touch()
            wait_until(ended)
    found = row(result)
    assert (found.status, found.losses) == ("SUCCEEDED", 1)
    assert written(result) == [found.fence]
    assert traces(store) == []


@pytest.mark.parametrize("seconds", [0.6])
def test_a_long_atomic_run_and_its_batch(
    seconds: float, store: Store, journal: Journal, batches: Batches, gate: Path
) -> None:
    """SQLite's only write lock is taken, so nobody can give the rest back meanwhile; nothing is lost by that."""
    batches()
    result = jobs.writes_and_waits.using(group="g").enqueue(label="A", gate=str(gate))
    others = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n}"} for n in range(10)])
    opener = threading.Timer(seconds, gate.touch)
    opener.start()
    drain()
    opener.join()
    assert statuses([result, *others]) == ["SUCCEEDED"] * 11
    assert written(result) == [row(result).fence]
    assert [row(run).losses for run in others] == [0] * 10


# --- a connection that is lost at COMMIT


@pytest.fixture
def at_first_commit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Arranges for a call just before the next COMMIT of a transaction that wrote an effect."""
    real = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]

    def arrange(call: Callable[[], None]) -> None:
        left = [call]

        def commit(self: BaseDatabaseWrapper) -> None:
            if left and Written.objects.using(self.alias).exists():
                left.pop()()
            real(self)

        monkeypatch.setattr(BaseDatabaseWrapper, "_commit", commit)

    return arrange


def serve_through(wire: Proxy) -> None:
    def rerouted() -> None:
        reroute(str(wire.path.parent))
        drain()

    aside(rerouted)


def test_a_commit_whose_reply_is_lost_is_done(
    wire: Proxy, store: Store, journal: Journal, at_first_commit: Callable[[Callable[[], None]], None]
) -> None:
    result = jobs.writes.using(max_attempts=3).enqueue(label="A")
    jobs.note.enqueue(label="B")
    at_first_commit(lambda: wire.drop_replies(1))
    with ends() as said:
        serve_through(wire)
    assert said == ["run_succeeded"] * 2
    assert (row(result).status, row(result).attempts) == ("SUCCEEDED", 1)
    assert written(result) == [row(result).fence]
    assert journal() == [["A"], ["B"]]


def test_a_connection_that_is_lost_before_commit_is_a_failed_attempt(
    wire: Proxy, store: Store, journal: Journal, at_first_commit: Callable[[Callable[[], None]], None]
) -> None:
    result = jobs.writes_and.using(group="g").enqueue(label="A", what="")
    jobs.note.enqueue(label="B")
    at_first_commit(wire.cut)
    serve_through(wire)
    found = row(result)
    assert (found.status, found.attempts, found.failures) == ("SUCCEEDED", 2, 1)
    assert written(result) == [found.fence]
    assert journal() == [["A"], ["A"], ["B"]]
