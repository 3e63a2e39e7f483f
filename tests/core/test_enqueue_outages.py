"""`enqueue` while Redis or the broker is down or silent."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import redis
from celery import Celery
from django.conf import settings
from django.db import transaction
from django.test import override_settings

from groupjobs import bell, recovery
from groupjobs.models import JobRun
from groupjobs.moves import publishing
from groupjobs.store import Store
from project.embedded import EmbeddedValkey
from tests.core.rows import QUEUE, again
from tests.core.serving import drain, known, reopen, statuses, traces
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until
from tests.servers.wire import SilentPort

pytestmark = pytest.mark.django_db(transaction=True)
Journal = Callable[[], list[list[Any]]]


@pytest.fixture
def broker_silent(silent_port: SilentPort, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A broker that accepts and never answers."""
    app = Celery("silent", broker=silent_port.amqp_url, set_as_current=False)
    monkeypatch.setattr(f"{__name__}.silent_app", app, raising=False)
    monkeypatch.setattr(bell, "_ringers", {})  # the thread that sends keeps its connection
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "CELERY_APP": f"{__name__}.silent_app"}):
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
