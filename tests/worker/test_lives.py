"""A worker's processes die, stand still, or hold the interpreter."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from groupjobs.models import JobRun
from groupjobs.store import Store
from tests.conftest import StartWorker
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until
from tests.worker import work
from tests.worker.conftest import QUICK, beats, record, watchdog

pytestmark = pytest.mark.celery
Journal = Callable[[], list[list[Any]]]


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a1_a_killed_worker_is_reaped_at_once(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path, pool: str
) -> None:
    worker = start_worker(pool=pool, options=QUICK, groupjobs={"WORKER_TTL": 15})
    beats(store, worker)
    jobs.first_waits.enqueue("a", gate=str(gate))
    wait_until(lambda: ["a", "first"] in journal())
    began = time.monotonic()
    worker.kill()
    wait_until(lambda: record(store, worker) is None, 2, "the worker is reaped")
    assert time.monotonic() - began < 1
    assert store.overview().consumers == ()
    wait_until(lambda: not worker_processes(worker.pid), 2, "nothing of it runs")


def test_a1_a_killed_child_is_reaped_at_once_and_its_run_is_served_again(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    worker = start_worker(options=QUICK, groupjobs={"WORKER_TTL": 15})
    beats(store, worker)
    jobs.first_waits.enqueue("a", gate=str(gate))
    wait_until(lambda: ["a", "first"] in journal())
    (consumer,) = store.overview().consumers
    began = time.monotonic()
    worker.send(signal.SIGKILL, consumer.pid)
    wait_until(lambda: ["a", "again"] in journal(), 3, "the run begins again")
    assert time.monotonic() - began < 2
    wait_until(lambda: JobRun.objects.get().status == "SUCCEEDED")
    assert JobRun.objects.get().losses == 1


def test_a_killed_watchdog_is_replaced_and_the_run_goes_on(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    worker = start_worker(options=QUICK, groupjobs={"WORKER_TTL": 5})
    beats(store, worker)
    jobs.waits.enqueue("a", gate=str(gate))
    wait_until(lambda: ["a", "begins"] in journal())
    old = watchdog(worker)
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: watchdog(worker) != old, what="a new watchdog")
    wait_until(lambda: (found := record(store, worker)) and found.beat_age_ms < 900, 5, "it beats")
    gate.touch()
    wait_until(lambda: JobRun.objects.get().status == "SUCCEEDED")
    assert (JobRun.objects.get().attempts, JobRun.objects.get().losses) == (1, 0)


def test_a_stopped_worker_is_not_beaten_for_and_goes_on_as_another(start_worker: StartWorker, store: Store) -> None:
    worker = start_worker(options=QUICK, groupjobs={"WORKER_TTL": 1.5})
    old = beats(store, worker).worker
    worker.send(signal.SIGSTOP)
    wait_until(lambda: store.tick("another", 0).state and record(store, worker) is None, 20, "it is judged dead")
    worker.send(signal.SIGCONT)
    new = beats(store, worker).worker
    assert new != old
    jobs.noop.enqueue()
    wait_until(lambda: JobRun.objects.get().status == "SUCCEEDED", 20)
    assert JobRun.objects.get().worker == new


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_b1_a_handler_that_holds_the_interpreter_is_not_robbed(
    start_worker: StartWorker, store: Store, journal: Journal, pool: str
) -> None:
    worker = start_worker(pool=pool, options=QUICK, groupjobs={"WORKER_TTL": 1.5})
    beats(store, worker)
    work.holds_the_interpreter.enqueue("a", seconds=4.5)
    wait_until(lambda: ["a", "begins"] in journal())

    def ended() -> bool:
        assert store.tick("another", 0)
        return JobRun.objects.get().status == "SUCCEEDED"

    wait_until(ended, 20, pause=0.1)
    assert journal() == [["a", "begins"], ["a", "ends"]]
    assert (JobRun.objects.get().attempts, JobRun.objects.get().losses) == (1, 0)


def test_the_watchdogs_command_line_tells_no_secret(start_worker: StartWorker, store: Store) -> None:
    worker = start_worker(options=QUICK)
    beats(store, worker)
    shown = Path(f"/proc/{watchdog(worker)}/cmdline").read_bytes()
    password = settings.REDIS_URL.partition(":@")[0].partition("://:")[2] or settings.REDIS_URL
    assert password.encode() not in shown
    assert shown.split(b"\0")[1:] == [b"-m", b"groupjobs.watchdog", b""]


def worker_processes(session: int) -> list[int]:
    """Processes of the session that a worker was started in, and watchdogs without a parent of ours."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found
