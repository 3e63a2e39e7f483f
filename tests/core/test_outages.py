"""A server is down, silent, or has lost its memory while a handler runs: nothing is lost, nobody is robbed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from groupjobs import recovery
from groupjobs.consumer.patience import Patience
from groupjobs.recovery.sweep import try_to_sweep
from groupjobs.store import Store
from project.embedded import EmbeddedValkey
from project.embedded_postgres import EmbeddedPostgres
from tests.core.ghosts import row
from tests.core.rows import QUEUE, attempts
from tests.core.serving import Watched, drain, ended, reopen, serve, serving, traces
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

Journal = Callable[[], list[list[Any]]]


def warnings(caplog: pytest.LogCaptureFixture, *about: str) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [message for message in found if all(word in message for word in about)]


def ended_once(result: Any) -> None:
    found = row(result)
    assert (found.status, found.attempts, found.failures, found.losses) == ("SUCCEEDED", 1, 0, 0)
    assert attempts(found) == []


# --- the database


@pytest.fixture
def postgres(postgres_server: EmbeddedPostgres, transactional_db: None) -> Iterator[EmbeddedPostgres]:
    """The test's PostgreSQL, which the test may kill; it runs again afterwards, with little to replay."""
    with connection.cursor() as cursor:
        cursor.execute("checkpoint")
    yield postgres_server
    connections.close_all()
    postgres_server.start()


@pytest.mark.parametrize("how", ["kill", "halt"])
def test_the_database_is_away_when_a_run_ends(
    how: str, postgres: EmbeddedPostgres, store: Store, journal: Journal, gate: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = jobs.waits.enqueue(label="A", gate=str(gate))
    behind = jobs.note.enqueue(label="B")
    with Watched() as watched, serving(watched=watched):
        wait_until(lambda: ["A", "begins"] in journal())
        connections.close_all()
        getattr(postgres, how)()
        gate.touch()
        wait_until(lambda: warnings(caplog, "database", "does not answer"))
        assert ["B"] not in journal()
        postgres.start()
        wait_until(ended)
    ended_once(result)
    ended_once(behind)
    assert journal() == [["A", "begins"], ["A", "ends"], ["B"]]
    assert len(warnings(caplog, "database", "does not answer")) == 1
    assert len(warnings(caplog, "database", "answers again")) == 1
    assert traces(store) == []


def test_the_database_is_away_when_a_batch_begins(
    postgres: EmbeddedPostgres, store: Store, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    results = jobs.note.enqueue_many([{"label": label} for label in "ABC"])
    connections.close_all()
    postgres.kill()
    with Watched() as watched, serving(watched=watched):
        wait_until(lambda: warnings(caplog, "database", "does not answer"))
        postgres.start()
        wait_until(ended)
    for result in results:
        ended_once(result)
    assert journal() == [["A"], ["B"], ["C"]]


# --- Redis


def test_redis_is_killed_while_a_handler_runs(
    short_ttl: None,
    store: Store,
    valkey: EmbeddedValkey,
    journal: Journal,
    gate: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It wakes up with its append-only file under another run_id: a rebuild, and the long run is not robbed."""
    result = jobs.waits.enqueue(label="A", gate=str(gate))
    behind = jobs.note.enqueue(label="B")
    with Watched() as watched, serving(watched=watched):
        wait_until(lambda: ["A", "begins"] in journal())
        valkey.kill()
        valkey.start()
        reopen()
        serve()
        assert row(result).status == "RUNNING"
        gate.touch()
        wait_until(ended)
    ended_once(result)
    ended_once(behind)
    assert journal() == [["A", "begins"], ["A", "ends"], ["B"]]
    assert traces(store) == []


def test_sweeps_name_a_server_that_is_away_once(
    store: Store, valkey: EmbeddedValkey, caplog: pytest.LogCaptureFixture
) -> None:
    valkey.kill()
    for kind in ("quick", "full", "rebuild"):
        try_to_sweep(QUEUE, kind)
    assert len(warnings(caplog, "sweeps need")) == 1
    valkey.start()
    try_to_sweep(QUEUE, "quick")
    assert len(warnings(caplog, "sweeps need", "answers again")) == 1


def test_d2_redis_is_down_when_a_run_ends(
    short_ttl: None,
    store: Store,
    valkey: EmbeddedValkey,
    journal: Journal,
    gate: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = jobs.waits.enqueue(label="A", gate=str(gate))
    behind = jobs.note.enqueue(label="B")
    with Watched() as watched, serving(watched=watched):
        wait_until(lambda: ["A", "begins"] in journal())
        valkey.kill()
        gate.touch()
        wait_until(lambda: warnings(caplog, "Redis does not answer"))
        assert row(result).status == "SUCCEEDED", "the row comes first"
        valkey.start()
        reopen()
        wait_until(ended)
    ended_once(result)
    ended_once(behind)
    assert len(warnings(caplog, "Redis does not answer")) == 1
    assert traces(store) == []


def test_b8_redis_is_silent_for_longer_than_the_ttl(
    short_ttl: None, store: Store, valkey: EmbeddedValkey, journal: Journal, gate: Path
) -> None:
    """The queue's clock stands still meanwhile, so no beat is stale when it wakes."""
    result = jobs.waits.enqueue(label="A", gate=str(gate))
    seen = store.tick("", 0)
    with Watched() as watched, serving(watched=watched):
        wait_until(lambda: ["A", "begins"] in journal())
        valkey.pause()
        until = time.monotonic() + 1.2
        wait_until(lambda: time.monotonic() > until)
        valkey.resume()
        for _ in range(3):
            serve()
        assert recovery.recover().counts["kept"] == 1
        assert row(result).status == "RUNNING"
        gate.touch()
        wait_until(ended)
    assert store.tick("", 0).epoch == seen.epoch
    ended_once(result)
    assert journal() == [["A", "begins"], ["A", "ends"]]


def test_e2_a_flush_robs_nobody_and_loses_nothing(short_ttl: None, store: Store, journal: Journal, gate: Path) -> None:
    long_run = jobs.waits.enqueue(label="A", gate=str(gate))
    behind = jobs.note.enqueue(label="B")
    others = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n % 3}"} for n in range(9)])
    late = jobs.note.using(run_after=None).enqueue(label="C")
    with Watched() as watched, serving(watched=watched):
        wait_until(lambda: ["A", "begins"] in journal())
        store.client.flushall()
        reopen()
        with serving():
            wait_until(lambda: ended(others))
        assert row(long_run).status == "RUNNING"
        assert ["B"] not in journal()
        gate.touch()
        wait_until(ended)
    for result in (long_run, behind, late, *others):
        ended_once(result)
    said = [words[0] for words in journal()]
    assert [label for label in said if label in ("A", "B", "C")] == ["A", "A", "B", "C"]
    assert traces(store) == []


def test_a_consumer_that_is_stopped_while_redis_is_away_leaves_its_runs_to_recovery(
    short_ttl: None,
    store: Store,
    valkey: EmbeddedValkey,
    journal: Journal,
    gate: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Patience.__init__, "__defaults__", (0.5,))  # seconds of grace
    result = jobs.waits.enqueue(label="A", gate=str(gate))
    behind = jobs.note.enqueue(label="B")
    with serving():
        wait_until(lambda: ["A", "begins"] in journal())
        valkey.kill()
        gate.touch()
        wait_until(lambda: row(result).status == "SUCCEEDED")
    valkey.start()
    reopen()
    drain(lambda: ended([behind]))
    ended_once(result)
    ended_once(behind)
    assert journal() == [["A", "begins"], ["A", "ends"], ["B"]]
    wait_until(lambda: not traces(store))
