"""Brokers: one that was down, and RabbitMQ."""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery
from django.conf import settings
from django.test import override_settings

from groupjobs import bell
from groupjobs.models import JobRun
from groupjobs.store import Store
from groupjobs.worker.tick import SELF_PAUSE, QueueTick
from project.embedded import EmbeddedValkey
from tests.conftest import StartWorker
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until
from tests.worker.conftest import QUEUE, QUICK, beats

pytestmark = pytest.mark.celery
Journal = Callable[[], list[list[Any]]]
RABBIT = "amqp://guest:guest@127.0.0.1:5672//"
bells_of_this_test: Celery


class Idle:
    """A worker with a free slot, whose bells nobody answers."""

    direct = ""

    def serve(self) -> frozenset[str]:
        """Its queues."""
        return frozenset({QUEUE})

    def free(self) -> int:
        """Its free slots."""
        return 1

    def answered(self) -> int:
        """Bells that were answered."""
        return 0


@pytest.fixture
def ring_through(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Celery]]:
    """This process rings through this broker."""

    def use(url: str, **conf: Any) -> Celery:
        app = Celery("bells", broker=url, set_as_current=False)
        app.conf.update(conf)
        monkeypatch.setattr("tests.worker.test_brokers.bells_of_this_test", app, raising=False)
        monkeypatch.setattr(bell, "_ringers", {})  # the thread that sends keeps its connection
        return app

    with override_settings(
        GROUPJOBS={**settings.GROUPJOBS, "CELERY_APP": "tests.worker.test_brokers.bells_of_this_test"}
    ):
        yield use


@pytest.fixture
def broker() -> Iterator[EmbeddedValkey]:
    """A broker of its own."""
    with EmbeddedValkey() as server:
        yield server


def test_a_ready_group_is_rung_within_five_seconds_of_a_broker_s_return(
    store: Store, broker: EmbeddedValkey, ring_through: Callable[..., Celery]
) -> None:
    """So many bells were in vain that each of the two who ring, Redis and the tick, waits longest for the next."""
    ring_through(broker.broker_url)
    store.open(store.tick("", 0).epoch)
    store.beat("w", 1, {})
    broker.kill()
    jobs.note.enqueue("a")
    wait_until(bell.unheard, what="the broker is known to be down")
    second_ago = int(store.client.get(f"{store.base}:clock").split()[0]) - 1000
    store.client.hset(f"{store.base}:bells", mapping={"n": 1, "at": second_ago, "pause": 8000})
    tick = QueueTick(QUEUE, Idle())
    tick._self_pause, tick._self_rung = SELF_PAUSE[1], time.monotonic()
    broker.start()
    back = time.monotonic()
    with broker.client() as client:
        client.execute_command("SELECT", 1)
        while not client.llen("celery"):
            assert time.monotonic() - back <= 5
            if time.monotonic() >= tick.due:
                tick.look(1, 0.6)
            time.sleep(0.02)


# --- RabbitMQ


@pytest.fixture
def rabbit(ring_through: Callable[..., Celery]) -> Iterator[Celery]:
    """RabbitMQ at its usual place, with a Celery queue of this test."""
    try:
        socket.create_connection(("127.0.0.1", 5672), 2).close()
    except OSError:
        pytest.skip("no RabbitMQ answers at 127.0.0.1:5672")
    name = f"groupjobs-test-{os.getpid()}"
    app = ring_through(RABBIT, task_default_queue=name)
    yield app
    bell.mute(False)
    with app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        channel.queue_delete(name)


def test_rabbitmq_as_broker_with_bells_dropped_and_doubled(
    start_worker: StartWorker, store: Store, journal: Journal, rabbit: Celery
) -> None:
    name = rabbit.conf.task_default_queue
    for _ in range(2):
        worker = start_worker(options=QUICK, celery={"task_default_queue": name}, env={"BROKER_URL": RABBIT})
        beats(store, worker)
        assert "Connected to amqp://" in worker.text()
    numbers = itertools.count()
    with rabbit.connection_for_write() as connection:
        for what in range(31):
            bell.mute(what % 3 == 0)
            for group in "abc":
                jobs.one_of_many.enqueue(group=group, number=next(numbers))
            if what % 3 == 1:
                for _ in range(3):
                    rabbit.send_task(bell.CONSUME, args=[QUEUE], queue=name, connection=connection)
    wait_until(lambda: not JobRun.objects.exclude(status="SUCCEEDED").exists(), 30)
    bell.mute(True)
    jobs.one_of_many.enqueue(group="a", number=93)
    wait_until(lambda: not JobRun.objects.exclude(status="SUCCEEDED").exists(), 10, "a worker rings for itself")
    bell.mute(False)
    said = defaultdict(list)
    for word, group, number in journal():
        said[group].append((number, word))
    assert dict(said) == {
        group: [(number, word) for number in range(at, 94 if group == "a" else 93, 3) for word in ("begin", "end")]
        for at, group in enumerate("abc")
    }
    assert set(JobRun.objects.values_list("attempts", "losses")) == {(1, 0)}
