"""Health: a verdict over facts that were really asked for, in bounded time."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client, override_settings
from django.urls import include, path
from django.utils import timezone

from groupjobs import health, recovery
from groupjobs.explain import QueueFacts
from groupjobs.health import Backlog, judge
from groupjobs.models import JobRun
from groupjobs.moves import publish
from groupjobs.store import Consumer, Store
from groupjobs.store.replies import ConsumerState, Overview, WorkerState
from project.embedded import EmbeddedValkey
from tests.core.rows import change, new
from tests.core.serving import drain
from tests.jobsapp.jobs import noop
from tests.servers.wire import SilentPort

urlpatterns = [path("jobs/", include("groupjobs.urls"))]

WORKER = WorkerState("host:1:a", 1000, 2, False, 500)
BUSY = ConsumerState("n", "host:1:a", 7, 100, 3)
TOLD = Overview("open", "1", False, 0, 0, 0, 0, 0, (WORKER,), (), {}, 0, None, 10_000, 5_000)
FACTS = QueueFacts("default", "open", 15.0, workers=1, overview=TOLD)


def said(facts: QueueFacts = FACTS, backlog: Backlog | None = None, **told: Any) -> list[str]:
    assert facts.overview is not None
    return list(judge([replace(facts, overview=facts.overview._replace(**told))], backlog or Backlog(), 300.0))


def test_nothing_is_wrong() -> None:
    assert said() == []
    assert said(replace(FACTS, workers=0), workers=()) == [], "nobody is needed while nothing waits"
    assert said(ready=3, ready_age_ms=29_000, workers=(WORKER._replace(served_age_ms=None),)) == []
    assert said(ready=3, ready_age_ms=90_000, paused=True, workers=(WORKER._replace(served_age_ms=None),)) == []


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"workers": (WORKER._replace(beat_age_ms=9000),)}, "worker host:1:a was last heard of 9 s ago"),
        ({"consumers": (BUSY._replace(seen_age_ms=61_000),)}, "(pid 7) holds runs, and was last heard of 1 min ago"),
        ({"sweep_age_ms": 901_000}, "no full sweep has ended for 15 min"),
        ({"sweep_age_ms": None, "epoch_age_ms": 901_000}, "no full sweep has ended for 15 min"),
    ],
)
def test_each_problem_is_named(told: dict[str, Any], problem: str) -> None:
    (found,) = said(**told)
    assert problem in found


def test_e4_a_worker_that_beats_and_serves_nothing_is_named() -> None:
    """Only while a group waits that it has a free slot for."""
    idle = WORKER._replace(served_age_ms=120_000)
    (found,) = said(ready=1, ready_age_ms=40_000, workers=(idle,))
    assert "worker host:1:a has a free slot, but serves nothing (last served step 2 min ago)" in found
    assert said(ready=1, ready_age_ms=40_000, workers=(idle._replace(slots=1),), consumers=(BUSY,)) == []
    assert said(workers=(idle,)) == []


def test_states_of_redis_and_rows() -> None:
    assert said(replace(FACTS, state="rebuild", rebuilding=3.0)) == [
        "Queue default: Redis lost its memory 3 s ago; it is being rebuilt."
    ]
    assert list(judge([replace(FACTS, state="down", overview=None)], Backlog((), 5), 300.0)) == [
        "Queue default: Redis runs no script."
    ]
    assert said(replace(FACTS, workers=0), workers=(), later=1) == [
        "Queue default: something waits, and no worker serves it."
    ]
    assert said(backlog=Backlog((0, 2, 3, 10, 11), 4)) == [
        "2 abandonments could not be reported and wait for a person.",
        "1 abandonments could not be reported yet.",
        "4 runs are not published to Redis.",
    ]


@pytest.fixture
def served(store: Store) -> Store:
    """A worker has served a run, and the sweep was there."""
    noop.enqueue()
    drain()
    recovery.sweep("default")
    return store


def probe() -> tuple[int, dict[str, Any]]:
    with override_settings(ROOT_URLCONF=__name__):
        answer = Client().get("/jobs/health/")
    return answer.status_code, answer.json()


def test_a_queue_that_is_served_is_healthy(served: Store) -> None:
    status, told = probe()
    assert (status, told["ok"], told["problems"]) == (200, True, [])
    (worker,) = told["queues"]["default"]["workers"]
    assert worker["served_age"] < 60
    assert told["queues"]["default"]["sweep_age"] < 60
    call_command("groupjobs_status", "--health", "--json")


def test_e1_health_runs_a_real_script_and_loads_it_again(served: Store) -> None:
    served.client.script_flush()
    assert health.check().ok


def test_e1_a_server_that_answers_ping_and_runs_no_script_is_not_healthy(served: Store) -> None:
    try:
        served.client.execute_command("ACL", "SETUSER", "default", "-@scripting")
        assert served.client.ping()
        status, told = probe()
    finally:
        served.client.execute_command("ACL", "SETUSER", "default", "+@all")
    assert (status, told["problems"]) == (503, ["Queue default: Redis runs no script."])


def test_e4_the_age_of_the_last_served_step_grows_while_the_worker_beats(served: Store) -> None:
    """Its consumer is gone and its beat goes on, as when a child hangs."""
    (worker,) = served.overview().workers
    served.beat(worker.worker, 2, {})
    served.client.hincrby(f"{served.base}:stats", f"served {worker.worker}", -120_000)
    publish(new())
    served.client.zincrby(f"{served.base}:ready", -90_000, "g")
    found = health.check()
    assert not found.ok
    assert "has a free slot, but serves nothing (last served step 2 min ago)" in found.problems[0]
    with pytest.raises(SystemExit, match="1"):
        call_command("groupjobs_status", "--health")


def test_a_consumer_that_holds_runs_without_a_word_is_named(served: Store) -> None:
    publish(new())
    consumer = Consumer("nonce", "host:5:a", 5)
    served.beat(consumer.worker, 1, {consumer.nonce: 5})
    served.step(consumer, 1, 1)
    number, pid, seen, rest = served.client.hget(f"{served.base}:consumers", "nonce").decode().split(" ", 3)
    served.client.hset(f"{served.base}:consumers", "nonce", f"{number} {pid} {max(0, int(seen) - 70_000)} {rest}")
    if int(seen) < 70_000:  # the queue's clock is young: let it pass
        base = int(served.client.get(f"{served.base}:clock").split()[0])
        now = served.client.get(f"{served.base}:clock").split()[1].decode()
        served.client.set(f"{served.base}:clock", f"{base + 70_000} {now}")
        served.client.zadd(f"{served.base}:workers", {consumer.worker: base + 70_000})
    assert any("(pid 5) holds runs, and was last heard of 1 min ago" in problem for problem in health.check().problems)


def test_unreported_abandonments_and_unpublished_runs(served: Store) -> None:
    first, second = new(2)
    change(first, status="ABANDONED", report_attempts=10)
    change(second, unpublished=True)
    assert health.check().problems == (
        "1 abandonments could not be reported and wait for a person.",
        "1 runs are not published to Redis.",
    )


def test_a_redis_that_is_down_is_told_within_two_seconds(served: Store, valkey: EmbeddedValkey) -> None:
    valkey.kill()
    began = time.monotonic()
    status, told = probe()
    assert time.monotonic() - began < 2
    assert (status, told["ok"]) == (503, False)
    assert told["problems"] == ["Queue default: Redis runs no script."]


def test_a_redis_that_never_answers_is_told_within_two_seconds(served: Store, silent_port: SilentPort) -> None:
    queues: dict[str, Any] = {f"q{number}": {} for number in range(20)}
    url = f"redis://:secret-of-redis@127.0.0.1:{silent_port.port}/0"
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "REDIS": url, "QUEUES": queues}):
        began = time.monotonic()
        status, told = probe()
        assert time.monotonic() - began < 2
    assert status == 503
    assert len(told["problems"]) == 20
    assert "secret" not in json.dumps(told)


def test_the_sweep_is_remembered(store: Store) -> None:
    assert store.overview().sweep_age_ms is None
    recovery.sweep("default")
    age = store.overview().sweep_age_ms
    assert age is not None
    assert age < 60_000


def test_a_ready_group_tells_how_long_it_waits(store: Store) -> None:
    assert store.overview().ready_age_ms is None
    publish(new(priority=5))
    age = store.overview().ready_age_ms
    assert age is not None
    assert age < 60_000
    JobRun.objects.update(enqueued_at=timezone.now() - timedelta(hours=1))


def test_a_queue_that_nobody_has_served_yet(transactional_db: None) -> None:
    assert probe()[1]["problems"] == ["Queue default: no worker has served it yet."]


def test_only_questions_are_answered(served: Store) -> None:
    with override_settings(ROOT_URLCONF=__name__):
        assert Client().post("/jobs/health/").status_code == 405
