"""Enqueue: rows in the caller's transaction, publication on its commit, and servers that are down or silent."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from asgiref.sync import async_to_sync
from celery import Celery
from django.conf import settings
from django.core.management import call_command
from django.db import connections, transaction
from django.test import override_settings

from groupjobs import bell, errors, ledger, recovery
from groupjobs.models import JobProgress, JobRun
from groupjobs.moves import publishing
from groupjobs.store import Store
from project.embedded import EmbeddedValkey
from tests.core.rows import QUEUE, again
from tests.core.serving import drain, known, reopen, serve, statuses, traces
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until
from tests.servers.wire import SilentPort

pytestmark = pytest.mark.django_db(transaction=True)

Journal = Callable[[], list[list[Any]]]
silent_app: Celery


@pytest.fixture
def broker_silent(silent_port: SilentPort, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A broker that accepts and never answers."""
    app = Celery("silent", broker=silent_port.amqp_url, set_as_current=False)
    monkeypatch.setattr("tests.core.test_enqueue.silent_app", app, raising=False)
    monkeypatch.setattr(bell, "_ringers", {})  # the thread that sends keeps its connection
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "CELERY_APP": "tests.core.test_enqueue.silent_app"}):
        yield


@pytest.fixture
def redis_silent(silent_port: SilentPort, store: Store) -> Iterator[None]:
    """A Redis that accepts and never answers; `store` still speaks to the real one."""
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "REDIS": silent_port.redis_url}):
        yield


def warnings(caplog: pytest.LogCaptureFixture, about: str = "") -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [message for message in found if about in message]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    before = time.monotonic()
    answer = call()
    return answer, time.monotonic() - before


def scripts_run(client: redis.Redis) -> int:
    return sum(
        stats["calls"] for name, stats in client.info("commandstats").items() if name.startswith("cmdstat_evalsha")
    )


# --- transactions


def test_in_autocommit_a_run_is_published_at_once(store: Store) -> None:
    result = jobs.note.enqueue(label="a")
    assert known(store, [result]) == {int(result.id)}
    row = again(int(result.id))
    assert (row.status, row.group, row.unpublished) == ("READY", "g", False)
    assert JobProgress.objects.filter(run=row).exists()


def test_d5_a_rolled_back_enqueue_leaves_nothing(store: Store, journal: Journal) -> None:
    with transaction.atomic():
        jobs.note.enqueue(label="a")
        jobs.note.enqueue_many([{"label": "b"}, {"label": "c"}])
        assert traces(store) == []
        transaction.set_rollback(True)
    assert traces(store) == []
    assert JobRun.objects.count() == JobProgress.objects.count() == 0
    serve()
    assert journal() == []


def test_d5_nothing_is_published_before_the_outermost_commit(store: Store) -> None:
    with transaction.atomic():
        with transaction.atomic(), transaction.atomic():
            jobs.note.enqueue(label="a")
        assert traces(store) == []
        jobs.note.enqueue(label="b")
        assert traces(store) == []
    assert known(store, list(JobRun.objects.all())) == set(JobRun.objects.values_list("id", flat=True))
    assert len(known(store, list(JobRun.objects.all()))) == 2


def test_d5_a_rolled_back_savepoint_leaves_nothing_of_its_own(store: Store, journal: Journal) -> None:
    with transaction.atomic():
        jobs.note.enqueue(label="before")
        with transaction.atomic():
            jobs.note.enqueue(label="inside")
            transaction.set_rollback(True)
        with transaction.atomic():
            jobs.note.enqueue(label="kept")
        mark = transaction.savepoint()
        jobs.note.enqueue(label="by hand")
        transaction.savepoint_rollback(mark)
        jobs.note.enqueue(label="after")
    drain()
    assert journal() == [["before"], ["kept"], ["after"]]
    assert JobRun.objects.count() == JobProgress.objects.count() == 3
    assert traces(store) == []


def test_a_handler_s_error_rolls_back_what_it_caught(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():  # noqa: PT012 (the block is the transaction)
        jobs.note.enqueue(label="a")
        raise ZeroDivisionError
    assert JobRun.objects.count() == 0
    assert traces(store) == []


def test_an_on_commit_hook_that_raises_does_not_stop_the_publication(store: Store) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    with transaction.atomic():
        transaction.on_commit(broken, robust=True)
        jobs.note.enqueue(label="a")
        transaction.on_commit(lambda: jobs.note.enqueue(label="b"))
    assert len(known(store, list(JobRun.objects.all()))) == 2


def test_refused_arguments_write_nothing(store: Store) -> None:
    with pytest.raises(errors.Refused, match="label is nan"):
        jobs.note.enqueue_many([{"label": "a"}, {"label": float("nan")}])
    with pytest.raises(errors.Refused):
        jobs.note.enqueue_many([{"label": "a"}, {"lable": "b"}])
    assert JobRun.objects.count() == 0
    assert traces(store) == []


def test_enqueue_in_async_code(store: Store) -> None:
    async def several() -> list[Any]:
        return [await jobs.note.aenqueue(label="a"), *await jobs.note.aenqueue_many([{"label": "b"}])]

    results = async_to_sync(several)()
    assert known(store, results) == {int(result.id) for result in results}
    drain()
    assert statuses(results) == ["SUCCEEDED"] * 2


# --- several databases


@pytest.fixture
def other(tmp_path: Path) -> Iterator[str]:
    """A second database, beside `default`."""
    connections.databases["other"] = {
        **connections["default"].settings_dict,
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "other.sqlite3"),
        "OPTIONS": {"timeout": 20},
    }
    connections["other"].connect()  # Django's test cases forbid what they were not told of to connect by itself
    yield "other"
    connections["other"].close()
    del connections["other"]
    del connections.databases["other"]


def test_a_transaction_of_another_database_does_not_matter(store: Store, other: str) -> None:
    with transaction.atomic(using=other):
        result = jobs.note.enqueue(label="a")
        assert known(store, [result]) == {int(result.id)}
        transaction.set_rollback(True, using=other)
    with transaction.atomic(), transaction.atomic(using=other):
        second = jobs.note.enqueue(label="b")
        transaction.set_rollback(True, using=other)
    assert known(store, [second]) == {int(second.id)}


def test_rows_may_live_in_another_database_than_the_default(store: Store, other: str, journal: Journal) -> None:
    call_command("migrate", "groupjobs", database=other, verbosity=0)
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "DATABASE": other}):
        with transaction.atomic():
            result = jobs.note.enqueue(label="a")
            assert traces(store) != []
            transaction.set_rollback(True)
        with transaction.atomic(using=other):
            jobs.note.enqueue(label="b")
            transaction.set_rollback(True, using=other)
        drain(lambda: not JobRun.objects.using(other).filter(status="READY").exists())
        rows = JobRun.objects.using(other)
        assert list(rows.values_list("id", "status")) == [(int(result.id), "SUCCEEDED")]
    assert JobRun.objects.using("default").count() == 0
    assert journal() == [["a"]]


# --- in a handler


def test_enqueue_in_a_handler(store: Store, journal: Journal) -> None:
    jobs.parent.enqueue(label="a", children=2)
    jobs.note.enqueue(label="b")
    drain()
    assert journal() == [["a"], ["b"], ["a.0"], ["a.1"]]


def test_what_a_failed_atomic_handler_enqueued_never_was(store: Store, journal: Journal) -> None:
    result = jobs.failing_parent.enqueue(label="a")
    drain()
    assert journal() == [["a"]]
    assert list(JobRun.objects.values_list("id", "status")) == [(int(result.id), "FAILED")]


# --- many


def test_enqueue_many_makes_one_script_call_a_thousand(store: Store) -> None:
    before = scripts_run(store.client)
    results = jobs.note.enqueue_many([{"label": str(number), "group": f"g{number % 10}"} for number in range(2500)])
    assert scripts_run(store.client) - before == 3
    assert len(known(store, results)) == 2500
    ids = [int(result.id) for result in results]
    assert ids == sorted(ids)
    assert [again(ids[number]).kwargs["label"] for number in (0, 999, 1000, 2499)] == ["0", "999", "1000", "2499"]


def test_a_hundred_enqueues_in_one_transaction_keep_their_order(store: Store, journal: Journal) -> None:
    with transaction.atomic():
        for number in range(100):
            jobs.note.enqueue(label=str(number))
    drain()
    assert journal() == [[str(number)] for number in range(100)]


# --- Redis down or silent


def test_d4_redis_down_and_up_again(
    short_ttl: None, store: Store, valkey: EmbeddedValkey, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    jobs.note.enqueue(label="a")
    valkey.kill()
    caplog.clear()
    first, seconds = timed(lambda: jobs.note.enqueue(label="b"))
    assert seconds < 1
    with transaction.atomic():
        results = [jobs.note.enqueue(label=label) for label in "cd"]
    assert len(warnings(caplog, "Redis")) == 1
    assert set(JobRun.objects.filter(unpublished=True).values_list("id", flat=True)) == {
        int(result.id) for result in (first, *results)
    }
    valkey.start()
    publishing.outage.ended()  # five seconds pass
    report = recovery.sweep(QUEUE, "quick")
    assert report is not None
    assert report.counts["republished"] == 3
    assert not JobRun.objects.filter(unpublished=True).exists()
    reopen()
    drain()
    assert journal() == [["a"], ["b"], ["c"], ["d"]]
    assert traces(store) == []


def test_redis_silent_for_a_while(
    store: Store, valkey: EmbeddedValkey, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    """A stopped server takes the call, and carries it out late: nothing runs twice."""
    jobs.note.enqueue(label="a")
    valkey.pause()
    result, seconds = timed(lambda: jobs.note.enqueue(label="b"))
    assert seconds < 1
    assert again(int(result.id)).unpublished
    assert len(warnings(caplog, "Redis")) == 1
    valkey.resume()
    publishing.outage.ended()
    report = recovery.sweep(QUEUE, "quick")
    assert report is not None
    assert not JobRun.objects.filter(unpublished=True).exists()
    drain()
    assert journal() == [["a"], ["b"]]
    assert traces(store) == []


def test_a_redis_that_never_answers(redis_silent: None, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    result, seconds = timed(lambda: jobs.note.enqueue(label="a"))
    assert seconds < 1
    row = again(int(result.id))
    assert (row.status, row.unpublished) == ("READY", True)
    assert len(warnings(caplog)) == 1
    for label in "bcd":
        more, seconds = timed(partial(jobs.note.enqueue, label=label))
        assert seconds < 0.1
        assert again(int(more.id)).unpublished
    _, seconds = timed(lambda: jobs.note.enqueue_many([{"label": "x"}] * 1000))
    assert seconds < 1
    assert JobRun.objects.filter(unpublished=True).count() == 1004
    assert len(warnings(caplog)) == 1


def test_a_broker_that_never_answers(broker_silent: None, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    first, seconds = timed(lambda: jobs.note.using(group="a").enqueue(label="a"))
    assert seconds < 1
    second, seconds = timed(lambda: jobs.note.using(group="b").enqueue(label="b"))
    assert seconds < 0.1
    wait_until(lambda: warnings(caplog, "broker"), what="a warning")
    third, seconds = timed(lambda: jobs.note.using(group="c").enqueue(label="c"))
    assert seconds < 0.1
    assert len(warnings(caplog)) == 1
    assert known(store, [first, second, third]) == {int(result.id) for result in (first, second, third)}
    assert not JobRun.objects.filter(unpublished=True).exists()


def test_d4_redis_and_broker_that_never_answer(
    broker_silent: None, silent_port: SilentPort, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "REDIS": silent_port.redis_url}):
        results, seconds = timed(lambda: jobs.note.enqueue_many([{"label": "a"}] * 10))
        assert seconds < 1
    assert statuses(results) == ["READY"] * 10
    assert len(warnings(caplog)) == 1


def test_enqueue_inside_a_transaction_does_not_wait_for_a_silent_redis_until_its_commit(
    redis_silent: None, store: Store
) -> None:
    started = time.monotonic()
    with transaction.atomic():
        _, seconds = timed(lambda: jobs.note.enqueue(label="a"))
        assert seconds < 0.1
        jobs.note.enqueue(label="b")
    assert time.monotonic() - started < 1


@pytest.mark.parametrize(
    ("fault", "mend"),
    [
        (("config", "set", "maxmemory", "1"), ("config", "set", "maxmemory", "0")),
        (("replicaof", "127.0.0.1", "1"), ("replicaof", "no", "one")),
    ],
    ids=["out of memory", "read-only replica"],
)
def test_a_redis_that_refuses_to_write(
    fault: tuple[str, ...],
    mend: tuple[str, ...],
    store: Store,
    redis_client: redis.Redis,
    caplog: pytest.LogCaptureFixture,
    journal: Journal,
) -> None:
    redis_client.execute_command(*fault)  # type: ignore[no-untyped-call]
    try:
        result = jobs.note.enqueue(label="a")
        assert again(int(result.id)).unpublished
        assert len(warnings(caplog, "Redis")) == 1
    finally:
        redis_client.execute_command(*mend)  # type: ignore[no-untyped-call]
    publishing.outage.ended()
    recovery.sweep(QUEUE, "quick")
    drain()
    assert journal() == [["a"]]


def test_e1_scripts_that_redis_forgot_are_loaded_again(
    store: Store, redis_client: redis.Redis, journal: Journal
) -> None:
    jobs.note.enqueue(label="a")
    redis_client.script_flush()
    result = jobs.note.enqueue(label="b")
    assert not again(int(result.id)).unpublished
    redis_client.script_flush()
    drain()
    assert journal() == [["a"], ["b"]]


def test_the_breaker_lets_through_after_its_pause(
    store: Store, valkey: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(publishing.outage, "pause", 0.2)
    valkey.pause()
    jobs.note.enqueue(label="a")
    valkey.resume()
    assert again(int(jobs.note.enqueue(label="b").id)).unpublished
    wait_until(lambda: not again(int(jobs.note.enqueue(label="c").id)).unpublished)
    assert len(warnings(caplog, "does not answer")) == 1
    assert len(warnings(caplog, "answers again")) == 1


def test_the_breaker_pauses_for_five_seconds() -> None:
    assert publishing.outage.pause == bell._ringer().outage.pause == 5.0


def test_d4_when_not_even_the_flag_can_be_written_the_full_sweep_finds_the_run(
    store: Store, valkey: EmbeddedValkey, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise RuntimeError("the process is dying")

    valkey.pause()
    with monkeypatch.context() as patch:
        patch.setattr("groupjobs.ledger.flag_unpublished", refused)
        result = jobs.note.enqueue(label="a")
    valkey.resume()
    store.drop([(int(result.id), "g", 0, 1)])  # the call that waited in the stopped server
    assert known(store, [result]) == set()
    publishing.outage.ended()
    recovery.sweep(QUEUE, "quick")
    assert known(store, [result]) == set()
    report = recovery.sweep(QUEUE, "full")
    assert report is not None
    assert report.counts["republished"] == 1
    drain()
    assert journal() == [["a"]]


# --- the quick sweep


def test_the_quick_sweep_publishes_thousands_in_order(store: Store, journal: Journal) -> None:
    lines = [("g", "[]", json.dumps({"label": str(number)}), None) for number in range(2100)]
    results = ledger.insert(ledger.Batch(QUEUE, jobs.note.job_name, lines))
    JobRun.objects.update(unpublished=True)
    report = recovery.sweep(QUEUE, "quick")
    assert report is not None
    assert report.counts["republished"] == 2100
    assert len(known(store, results)) == 2100
    drain()
    assert journal() == [[str(number)] for number in range(2100)]


def test_one_quick_sweep_at_a_time(store: Store) -> None:
    assert recovery.sweep(QUEUE, "quick") is not None
    assert recovery.sweep(QUEUE, "quick") is None
    assert recovery.sweep(QUEUE, "full") is not None
    assert recovery.sweep(QUEUE, "full") is None


def test_the_quick_sweep_leaves_flags_when_redis_is_still_down(store: Store, valkey: EmbeddedValkey) -> None:
    result = jobs.note.enqueue(label="a")
    JobRun.objects.update(unpublished=True)
    assert recovery.sweep(QUEUE, "quick") is not None
    assert not again(int(result.id)).unpublished
    JobRun.objects.update(unpublished=True)
    store.client.delete(*store.client.keys(f"{store.base}:turn:*"))
    publishing.outage.failed(OSError("down"), "test")
    assert recovery.sweep(QUEUE, "quick") is not None
    assert again(int(result.id)).unpublished


def test_a_run_whose_publication_was_lost_is_not_overtaken(store: Store, journal: Journal) -> None:
    """A waits unpublished while B of the same group, enqueued later, is published."""
    publishing.outage.failed(OSError("down"), "the breaker sends nothing")
    jobs.note.enqueue(label="a")
    publishing.outage.ended()
    first = JobRun.objects.get()
    second = jobs.note.enqueue(label="b")
    assert known(store, [first, second]) == {int(second.id)}
    drain()
    assert journal() == [["a"], ["b"]]
