"""Faults of Redis, of a real server each time: what is enqueued is kept, what runs goes on, and it ends in order."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.test import override_settings

from groupjobs import control, recovery
from groupjobs.models import JobRun
from groupjobs.moves import publishing
from groupjobs.store import Store, store_for
from project.embedded import EmbeddedValkey
from tests.core.ghosts import reserve, row, someone, vanish
from tests.core.rows import QUEUE
from tests.core.serving import Watched, drain, ended, pk_of, reopen, serve, serving, traces
from tests.jobsapp import jobs
from tests.jobsapp.models import Written
from tests.servers.waiting import wait_until
from tests.traps.leaks import found, recover_ghosts

pytestmark = [pytest.mark.django_db(transaction=True)]

Journal = Callable[[], list[list[Any]]]
Fault = Callable[[EmbeddedValkey], AbstractContextManager[type[Exception]]]


# --- a server that answers, and refuses


@contextmanager
def out_of_memory(valkey: EmbeddedValkey) -> Iterator[type[Exception]]:
    with valkey.client() as client:
        client.config_set("maxmemory", 1)
        yield redis.exceptions.OutOfMemoryError
        client.config_set("maxmemory", 0)


@contextmanager
def read_only(valkey: EmbeddedValkey) -> Iterator[type[Exception]]:
    with valkey.client() as client:
        client.replicaof("127.0.0.1", 1)
        yield redis.exceptions.ReadOnlyError
        client.replicaof("no", "one")


@contextmanager
def busy(valkey: EmbeddedValkey) -> Iterator[type[Exception]]:
    """Somebody's script does not end."""

    def spin() -> None:
        with valkey.client(timeout=60) as client, suppress(redis.ResponseError):
            client.eval("while true do end", 0)

    with valkey.client() as client:
        client.config_set("busy-reply-threshold", 50)
        thread = threading.Thread(target=spin)
        thread.start()
        wait_until(lambda: refused(client, redis.ResponseError))
        yield redis.ResponseError
        client.script_kill()
        thread.join()


@contextmanager
def loading(valkey: EmbeddedValkey) -> Iterator[type[Exception]]:
    """It has restarted, and takes two seconds and more to read its data."""
    with valkey.client() as client:
        client.execute_command("SELECT", 9)
        for number in range(2000):
            client.set(f"filler {number}", "x" * 100)
        client.bgrewriteaof()
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
        wait_until(lambda: not client.info("persistence")["aof_rewrite_scheduled"])
    valkey.kill()
    slow = {"key-load-delay": "1500", "loading-process-events-interval-bytes": "1024"}
    valkey.options |= slow
    starting = threading.Thread(target=valkey.start)
    starting.start()
    try:
        with valkey.client() as client:
            wait_until(lambda: refused(client, redis.BusyLoadingError))
        yield redis.BusyLoadingError
    finally:
        starting.join()
        for name in slow:
            del valkey.options[name]


def refused(client: redis.Redis, error: type[Exception]) -> bool:
    try:
        client.set("a key of this test", 1)
    except error:
        return True
    except redis.ConnectionError:
        return False
    return False


def lines(caplog: pytest.LogCaptureFixture, words: str) -> int:
    messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return len([message for message in messages if words in message])


@pytest.mark.parametrize("fault", [out_of_memory, read_only, busy, loading])
def test_e3_a_redis_that_refuses_costs_nothing(
    fault: Fault,
    short_ttl: None,
    store: Store,
    valkey: EmbeddedValkey,
    journal: Journal,
    gate: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A row is written all the same; a run that ends meanwhile has ended; each outage is logged once."""
    long_run = jobs.waits.enqueue(label="A", gate=str(gate))
    with Watched() as watched, serving(watched=watched):
        wait_until(journal)
        with fault(valkey) as error:
            with valkey.client() as client:
                assert refused(client, error)
            behind = jobs.note.enqueue(label="B")
            assert (row(behind).status, row(behind).unpublished) == ("READY", True)
            gate.touch()
            wait_until(lambda: row(long_run).status == "SUCCEEDED")
            if fault is not out_of_memory:  # the memory that ends a lease is granted
                wait_until(lambda: lines(caplog, "Redis does not answer"))
                assert ["B"] not in journal()
        reopen()
        publishing.outage.ended()
        recovery.sweep(QUEUE, "quick")
        wait_until(lambda: ended([long_run, behind]))
    assert journal() == [["A", "begins"], ["A", "ends"], ["B"]]
    assert [(row(run).attempts, row(run).losses) for run in (long_run, behind)] == [(1, 0)] * 2
    assert lines(caplog, "Redis (publishing) does not answer") == 1
    once = 0 if fault is out_of_memory else 1
    assert (lines(caplog, "Redis does not answer"), lines(caplog, "Redis answers again")) == (once, once)
    assert traces(store) == []


def test_e1_a_server_that_answers_ping_and_runs_no_script_is_not_well(store: Store, valkey: EmbeddedValkey) -> None:
    assert store.ping() == "open"
    store.client.script_flush()
    assert store.ping() == "open"
    with read_only(valkey):
        assert store.client.ping()
        with pytest.raises(redis.exceptions.ReadOnlyError):
            store.ping()


# --- a server that remembers something older


def restart_from(valkey: EmbeddedValkey, older: Path) -> None:
    valkey.kill()
    shutil.rmtree(valkey.folder / "appendonlydir")
    shutil.copytree(older, valkey.folder / "appendonlydir")
    valkey.start()


def test_e2b_a_redis_that_restarts_from_an_older_snapshot_hands_out_nothing_twice(
    short_ttl: None, store: Store, valkey: EmbeddedValkey, journal: Journal, gate: Path, tmp_path: Path
) -> None:
    """It says that A is with somebody and that B waits; both have ended. Of C, which runs, it knows nothing."""
    first, second = (jobs.writes.enqueue(label=label) for label in "AB")
    ghost = someone()
    reserve(store, ghost, 1)
    shutil.copytree(valkey.folder / "appendonlydir", tmp_path / "older")
    vanish(store, ghost)
    recovery.recover()
    drain(lambda: ended([first, second]))
    running = jobs.waits.enqueue(label="C", gate=str(gate), group="c")
    with Watched() as watched, serving(watched=watched):
        wait_until(lambda: ["C", "begins"] in journal())
        before = list(JobRun.objects.order_by("pk").values())
        restart_from(valkey, tmp_path / "older")
        older = store.snapshot([(pk_of(run), "g") for run in (first, second)]).entries
        assert [older[pk_of(run)].place for run in (first, second)] == ["leased", "line"]
        reopen()
        for _ in range(2):
            serve()
        assert found(recover_ghosts())["kept"] == 1
        assert list(JobRun.objects.order_by("pk").values()) == before
        last = jobs.writes.enqueue(label="D")
        gate.touch()
        wait_until(lambda: ended([running, last]))
    assert journal() == [["A"], ["B"], ["C", "begins"], ["C", "ends"], ["D"]]
    assert list(Written.objects.order_by("pk").values_list("run", "fence")) == [
        (pk_of(run), row(run).fence) for run in (first, second, last)
    ]
    fences = [row(run).fence for run in (first, second, running, last)]
    assert fences == sorted(set(fences)), "no number is given twice"
    recovery.recover()
    assert traces(store) == []


# --- one slot


def test_e5_every_key_that_a_full_run_touches_has_the_queue_s_hash_tag(
    store: Store, valkey: EmbeddedValkey, journal: Journal
) -> None:
    """Here Redis knows a user who may touch no other key, in scripts or without."""
    store.client.execute_command("ACL", "SETUSER", "tagged", "on", ">secret", f"~{store.base}*", "+@all")
    url = f"unix://tagged:secret@{valkey.socket}?db=0"
    try:
        with override_settings(GROUPJOBS={**settings.GROUPJOBS, "REDIS": url}):
            assert b"tagged" in store_for(QUEUE).client.execute_command("ACL", "WHOAMI")
            everything()
    finally:
        store.client.acl_deluser("tagged")
    assert store.client.acl_log() == []
    assert not JobRun.objects.exclude(status__in=("SUCCEEDED", "FAILED", "CANCELLED")).exists()
    assert traces(store) == []


def everything() -> None:
    """All kinds of runs and deeds."""
    recovery.rebuild(QUEUE)
    jobs.note.enqueue(label="}{", group="}odd{")
    jobs.note.using(priority=5).enqueue(label="urgent", group="u")
    jobs.note.using(run_after=None).enqueue_many([{"label": "many", "group": f"m{n}"} for n in range(3)])
    ungrouped = jobs.noop.enqueue()
    jobs.flaky.using(group="f").enqueue(label="retries")
    jobs.flaky.using(group="y", on_retry="yield").enqueue(label="yields")
    jobs.fails.using(group="x", after_failure="cancel").enqueue(label="fails")
    cancelled = jobs.note.enqueue(label="cancelled", group="x")
    control.hold(QUEUE, "u")
    control.limit_group(QUEUE, "f", concurrency=2, rate=(50, 1.0))
    control.cancel([pk_of(cancelled)])
    ghost = someone()
    reserve(store_for(QUEUE), ghost, 1)
    store_for(QUEUE).reap(worker=ghost.worker)
    with Watched() as watched:
        serve(watched=watched)
    control.resume(QUEUE, "u")
    recovery.sweep(QUEUE, "quick")
    recovery.sweep(QUEUE)
    drain()
    assert row(ungrouped).status == "SUCCEEDED"
    store_for(QUEUE).overview()
