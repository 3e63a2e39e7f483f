"""What an idle worker costs, and how soon a worker that is free finds work that nobody else can do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from groupjobs import bell
from groupjobs.explain import explain, facts_of
from groupjobs.models import JobRun
from groupjobs.store import Store
from groupjobs.worker.tick import BUDGET, pace
from project.embedded import EmbeddedValkey
from tests.conftest import StartWorker
from tests.jobsapp import jobs
from tests.servers.environment import ROOT
from tests.servers.waiting import wait_until
from tests.watchdog.conftest import holds
from tests.worker.conftest import QUICK, beats, record

pytestmark = pytest.mark.celery
Journal = Callable[[], list[list[Any]]]


def commands(valkey: EmbeddedValkey, seconds: float) -> list[str]:
    """What clients, not scripts, ask of database 0 in so many seconds."""
    seen: list[str] = []
    deadline = time.monotonic() + seconds
    listener: Any = valkey.client(timeout=seconds + 5)
    with listener.monitor() as monitor, valkey.client() as other:
        while time.monotonic() < deadline:
            other.ping()
            command = monitor.next_command()
            while command["command"] != "PING":
                if command["db"] == 0 and command["client_type"] != "lua":
                    seen.append(command["command"])
                command = monitor.next_command()
            time.sleep(0.05)
    return seen


def test_f3_an_idle_worker_costs_at_most_three_commands_a_second(
    start_worker: StartWorker, store: Store, valkey: EmbeddedValkey
) -> None:
    worker = start_worker(options=QUICK, groupjobs={"WORKER_TTL": 15})
    beats(store, worker)
    wait_until(lambda: worker.text().count(" succeeded in ") >= 4, what="the first sweeps have ended")
    idle = own(commands(valkey, 8))
    assert len(idle) <= 24, idle
    for number in range(1000):
        store.hold(f"held{number}", 1, True)
    jobs.note.enqueue_many([{"label": "blocked", "group": f"held{number}"} for number in range(1000)])
    blocked = own(commands(valkey, 8))
    assert len(blocked) <= 24, blocked
    assert not JobRun.objects.exclude(status="READY").exists()


def own(seen: Sequence[str]) -> list[str]:
    """Without what clients say when they connect."""
    return [command for command in seen if not command.startswith(("CLIENT", "HELLO", "AUTH", "SELECT", "PING"))]


def test_the_pace_of_ticks_leaves_room_for_the_beats() -> None:
    for ttl in (5.0, 15.0, 60.0):
        for queues in (1, 2, 3):
            beats_a_second = queues / min(3.0, ttl / 5)
            assert queues / pace(queues, ttl) + beats_a_second <= max(BUDGET, 2 + beats_a_second) + 0.01
    assert pace(1, 15) < 0.6


def test_a_run_is_found_by_the_worker_that_is_free(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    busy = start_worker(options=QUICK, celery={"worker_prefetch_multiplier": 4})
    beats(store, busy)
    jobs.waits.enqueue("a", gate=str(gate), group="a")
    jobs.waits.enqueue("b", gate=str(gate), group="b")
    wait_until(lambda: {"a", "b"} <= {label for label, *_ in journal()})
    free = start_worker(options=QUICK, celery={"worker_prefetch_multiplier": 4}, groupjobs={"WORKER_TTL": 15})
    beats(store, free)
    delays = []
    for number in range(20):
        began = time.monotonic()
        jobs.note.enqueue(f"n{number}", group=f"g{number}")
        wait_until(partial(said, journal, f"n{number}"), 10, pause=0.002)
        delays.append(time.monotonic() - began)
    gate.touch()
    assert percentile(delays, 95) <= 0.5, sorted(delays)


def test_f3_bells_that_a_busy_worker_holds_back_do_not_go_round_for_ever(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path, valkey: EmbeddedValkey
) -> None:
    beats(store, start_worker(options=QUICK, celery={"worker_prefetch_multiplier": 4}))
    for label in ("a", "b"):
        jobs.waits.enqueue(label, gate=str(gate), group=label)
    wait_until(lambda: {"a", "b"} <= {label for label, *_ in journal()})
    sent = messages_sent(valkey)
    bell.ring("default", 20)
    wait_until(lambda: broker(valkey).hlen("unacked") >= 7)
    gate.touch()
    wait_until(lambda: not (broker(valkey).llen("celery") or broker(valkey).hlen("unacked")), pause=0.01)
    assert messages_sent(valkey) - sent <= 20 * (1 + bell.HOPS) + 40


def messages_sent(valkey: EmbeddedValkey) -> int:
    """How many the broker has been given so far."""
    with valkey.client() as client:
        return int(client.info("commandstats").get("cmdstat_lpush", {"calls": 0})["calls"])


def said(journal: Journal, label: str) -> bool:
    return [label] in journal()


def percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[len(values) * percent // 100 - 1]


def test_a_scheduled_run_begins_in_time(start_worker: StartWorker, store: Store) -> None:
    from django.utils import timezone

    beats(store, start_worker(options=QUICK, groupjobs={"WORKER_TTL": 15}))
    due = timezone.now() + timezone.timedelta(seconds=2)  # type: ignore[attr-defined]
    jobs.note.using(run_after=due).enqueue("a")
    wait_until(lambda: JobRun.objects.get().status == "SUCCEEDED")
    started = JobRun.objects.get().started_at
    assert started is not None
    assert -0.05 <= (started - due).total_seconds() <= 0.5


def test_a_lost_bell_is_rung_again(start_worker: StartWorker, store: Store, valkey: EmbeddedValkey) -> None:
    worker = start_worker(options=QUICK)
    beats(store, worker)
    for number in range(5):
        jobs.note.enqueue(f"n{number}", group=f"g{number}")
        broker(valkey).delete("celery")
    wait_until(lambda: not JobRun.objects.exclude(status="SUCCEEDED").exists(), 10)


AHEAD = """
import time
real = time.time
time.time = lambda: real() + 60
"""


def test_b9_bells_that_come_twice_or_late_to_hosts_whose_clocks_differ(
    start_worker: StartWorker, store: Store, journal: Journal, valkey: EmbeddedValkey, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(AHEAD)
    bells, runs = broker(valkey), [jobs.note.enqueue(f"n{number}", group=f"g{number % 3}") for number in range(9)]
    bell.ring("default")
    wait_until(lambda: bells.llen("celery"), what="a bell waits")
    message = bells.lindex("celery", 0)
    bells.lpush("celery", message, message)
    start_worker(options=QUICK)
    start_worker(options=QUICK, env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    wait_until(lambda: JobRun.objects.filter(status="SUCCEEDED").count() == len(runs), 20)
    bells.lpush("celery", *[message] * 6)  # long after everything was done
    wait_until(lambda: not bells.llen("celery") and not store.overview().consumers, what="nobody serves")
    assert sorted(journal()) == [[f"n{number}"] for number in range(9)]
    assert all(labels == sorted(labels) for labels in by_group(journal()))
    assert set(JobRun.objects.values_list("attempts", "losses")) == {(1, 0)}


def by_group(said: list[list[Any]]) -> list[list[str]]:
    """What runs of each group have said, in order."""
    return [[label for (label,) in said if int(label[1:]) % 3 == group] for group in range(3)]


def broker(valkey: EmbeddedValkey) -> Any:
    """The database of Celery's messages."""
    client: Any = valkey.client()
    client.execute_command("SELECT", 1)
    return client


def test_a_worker_that_serves_other_celery_queues_leaves_the_queue_alone(
    start_worker: StartWorker, store: Store
) -> None:
    worker = start_worker(options=QUICK, queues=["mail"])
    bystander = wait_until(lambda: record(store, worker), 20, "it is known as a bystander")
    assert bystander is not None
    assert bystander.slots == 0
    jobs.note.enqueue("a", group="g")
    state = explain(facts_of("default", [("g", 0)])[0])
    reason = "1 workers run, but none of them serves the queue default (Celery queue celery)"
    assert (state.word, state.reason) == ("unserved", reason)
    assert [process for process in worker.descendants() if "groupjobs.watchdog" in process.cmdline()] == []
    worker.stop()
    assert store.overview().workers == ()


def test_an_outage_of_redis_is_logged_once_and_the_worker_goes_on(
    start_worker: StartWorker, store: Store, valkey: EmbeddedValkey
) -> None:
    worker = start_worker(options=QUICK, groupjobs={"WORKER_TTL": 3})
    beats(store, worker)
    valkey.kill()
    began = time.monotonic()
    wait_until(lambda: "Redis (ticks) does not answer" in worker.text(), 10)
    holds(lambda: worker.alive, 5 - (time.monotonic() - began))
    valkey.start()
    jobs.note.enqueue("a")
    wait_until(lambda: JobRun.objects.get().status == "SUCCEEDED", 30)
    assert worker.text().count("Redis (ticks) does not answer") == 1
    assert worker.text().count("Redis (beats) does not answer") == 1
