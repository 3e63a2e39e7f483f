"""Failures that take real workers to show."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groupjobs.models import JobRun
from groupjobs.store import Store
from tests.conftest import StartWorker
from tests.core.ghosts import begin, reserve, someone
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until
from tests.traps.leaks import found, recover_ghosts
from tests.watchdog.conftest import holds
from tests.worker.conftest import QUICK, beats, record, watchdog

pytestmark = pytest.mark.celery
Journal = Callable[[], list[list[Any]]]


def test_a1_a_group_is_served_within_two_seconds_of_the_kill_of_its_worker(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    busy = start_worker(options=QUICK, concurrency=1, groupjobs={"WORKER_TTL": 15})
    beats(store, busy)
    jobs.first_waits.enqueue("a", gate=str(gate))
    wait_until(lambda: ["a", "first"] in journal())
    beats(store, start_worker(options=QUICK, concurrency=1, groupjobs={"WORKER_TTL": 15}))
    killed = time.monotonic()
    busy.kill()
    wait_until(lambda: ["a", "again"] in journal(), 20, "the run begins elsewhere")
    assert time.monotonic() - killed <= 2


def test_a1_a_group_is_served_within_the_ttl_and_two_seconds_of_the_loss_of_its_host(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    """Main process, children and watchdog end at one moment: nobody says a word."""
    busy = start_worker(options=QUICK, concurrency=1, groupjobs={"WORKER_TTL": 3})
    beats(store, busy)
    jobs.first_waits.enqueue("a", gate=str(gate))
    wait_until(lambda: ["a", "first"] in journal())
    beats(store, start_worker(options=QUICK, concurrency=1, groupjobs={"WORKER_TTL": 3}))
    host = [watchdog(busy), busy.pid, *busy.children()]
    for pid in host:
        os.kill(pid, signal.SIGSTOP)
    lost = time.monotonic()
    for pid in host:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: ["a", "again"] in journal(), 20, "the run begins elsewhere")
    assert time.monotonic() - lost <= 3 + 2


def test_a3_a_long_run_goes_on_while_a_worker_starts_and_recover_ghosts_runs(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    """For three times the TTL; the new worker sweeps as it starts."""
    beats(store, start_worker(options=QUICK, concurrency=1, groupjobs={"WORKER_TTL": 1.5}))
    jobs.waits.enqueue("a", gate=str(gate))
    behind = jobs.note.enqueue("b")
    wait_until(lambda: ["a", "begins"] in journal())
    second = start_worker(options=QUICK, concurrency=1, groupjobs={"WORKER_TTL": 1.5})
    beats(store, second)
    wait_until(lambda: second.text().count("groupjobs.sweep") >= 2, what="it sweeps")
    until = time.monotonic() + 3 * 1.5
    while time.monotonic() < until:
        assert found(recover_ghosts()) == {"kept": 1}
    gate.touch()
    wait_until(lambda: JobRun.objects.get(pk=behind.id).status == "SUCCEEDED")
    assert journal() == [["a", "begins"], ["a", "ends"], ["b"]]
    assert list(JobRun.objects.values_list("attempts", "losses")) == [(1, 0), (1, 0)]


def test_b2_a_stopped_child_that_wakes_past_the_ttl_changes_nothing(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    first = start_worker(options=QUICK, concurrency=1, groupjobs={"WORKER_TTL": 1.5})
    beats(store, first)
    run = jobs.first_waits.enqueue("a", gate=str(gate))
    behind = jobs.note.enqueue("b")
    wait_until(lambda: ["a", "first"] in journal())
    [child] = first.children()
    first.send(signal.SIGSTOP, child)
    beats(store, start_worker(options=QUICK, concurrency=1, groupjobs={"WORKER_TTL": 1.5}))
    wait_until(lambda: JobRun.objects.get(pk=behind.id).status == "SUCCEEDED", 20)
    ended = list(JobRun.objects.values())
    gate.touch()
    first.send(signal.SIGCONT, child)
    last = jobs.note.enqueue("c")
    wait_until(lambda: JobRun.objects.get(pk=last.id).status == "SUCCEEDED", 20)
    wait_until(lambda: re.search(r"groupjobs.consume\[.*\] succeeded", first.text()), what="the late execution ends")
    holds(lambda: list(JobRun.objects.exclude(pk=last.id).values()) == ended, 0.5)
    won = JobRun.objects.get(pk=run.id)
    assert (won.status, won.result, won.attempts, won.losses) == ("SUCCEEDED", "again", 2, 1)
    assert journal().count(["b"]) == journal().count(["c"]) == 1


def test_b3_a_run_longer_than_the_broker_s_visibility_timeout_runs_once(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    """Two workers look for messages to deliver again, and the bell is acknowledged late."""
    celery = {"broker_transport_options": {"visibility_timeout": 2}, "task_acks_late": True}
    for _ in range(2):
        beats(store, start_worker(options=QUICK, concurrency=1, celery=celery))
    jobs.waits.enqueue("a", gate=str(gate))
    wait_until(lambda: ["a", "begins"] in journal())
    holds(lambda: journal() == [["a", "begins"]], 5)
    gate.touch()
    wait_until(lambda: JobRun.objects.get().status == "SUCCEEDED")
    assert journal() == [["a", "begins"], ["a", "ends"]]
    assert JobRun.objects.get().attempts == 1


def test_d9_a_hook_that_hangs_holds_up_no_shutdown(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    """It would wait half a minute; the report is made again later."""
    run = jobs.slowly_reported.enqueue("a", gate=str(gate))
    worker = start_worker(options=QUICK, concurrency=1, wait=False)
    ghost = someone()
    wait_until(lambda: store.overview().state == "open", 30)
    begin(ghost, reserve(store, ghost, 1))
    beats(store, worker)
    store.reap(worker=ghost.worker)
    wait_until(lambda: ["report", int(run.id), "too_many_losses"] in journal())
    began = time.monotonic()
    assert worker.stop(timeout=25) == 0
    assert time.monotonic() - began < 15
    assert JobRun.objects.get().abandon_reported_at is None
    assert record(store, worker) is None
