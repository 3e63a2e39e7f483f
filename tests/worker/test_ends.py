"""A worker shuts down: warm, cold, soft, by signal or by remote control."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groupjobs.models import JobRun
from groupjobs.store import Store
from project.celery import app
from tests.conftest import StartWorker
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until
from tests.watchdog.conftest import holds
from tests.worker.conftest import QUICK, beats, record, watchdog
from tests.worker.test_lives import worker_processes

pytestmark = pytest.mark.celery
Journal = Callable[[], list[list[Any]]]


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a10_a_warm_shutdown_leaves_nothing_behind(
    start_worker: StartWorker, store: Store, pool: str, tmp_path: Path
) -> None:
    worker = start_worker(pool=pool, options=QUICK, env={"TMPDIR": str(tmp_path)})
    beats(store, worker)
    dog = watchdog(worker)
    assert len(list(tmp_path.glob("groupjobs-*"))) == 1
    assert worker.stop() == 0
    assert store.overview().workers == ()
    assert not Path(f"/proc/{dog}").exists()
    assert worker_processes(worker.pid) == []
    assert list(tmp_path.glob("groupjobs-*")) == []


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_long_handler_is_kept_alive_until_celery_lets_it_finish(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path, pool: str
) -> None:
    worker = start_worker(pool=pool, options=QUICK, groupjobs={"WORKER_TTL": 1.5})
    beats(store, worker)
    jobs.waits.enqueue("a", gate=str(gate))
    wait_until(lambda: ["a", "begins"] in journal())
    worker.send(signal.SIGTERM)
    wait_until(lambda: (found := record(store, worker)) and found.leaving, 1, "the shutdown is announced")
    holds(lambda: store.tick("another", 0).state and record(store, worker), 4)
    gate.touch()
    assert worker.wait() == 0
    assert journal() == [["a", "begins"], ["a", "ends"]]
    assert JobRun.objects.get().status == "SUCCEEDED"
    assert store.overview().workers == ()


@pytest.mark.parametrize(
    ("number", "env", "celery"),
    [
        (signal.SIGQUIT, {}, {}),
        (signal.SIGQUIT, {}, {"worker_soft_shutdown_timeout": 1}),
        (signal.SIGTERM, {"REMAP_SIGTERM": "SIGQUIT"}, {}),
    ],
)
def test_a10_a_cold_shutdown_gives_back_without_a_loss(
    start_worker: StartWorker,
    store: Store,
    journal: Journal,
    gate: Path,
    number: signal.Signals,
    env: dict[str, str],
    celery: dict[str, Any],
) -> None:
    worker = start_worker(options=QUICK, env=env, celery=celery, groupjobs={"WORKER_TTL": 15})
    beats(store, worker)
    dog = watchdog(worker)
    jobs.first_waits.enqueue("a", gate=str(gate))
    wait_until(lambda: ["a", "first"] in journal())
    worker.send(number)
    worker.wait()
    wait_until(lambda: not Path(f"/proc/{dog}").exists(), 3, "the watchdog has ended")
    assert (store.overview().workers, store.overview().consumers) == ((), ())
    start_worker(options=QUICK)
    wait_until(lambda: JobRun.objects.get().status == "SUCCEEDED", 20)
    assert (JobRun.objects.get().losses, JobRun.objects.get().failures) == (0, 0)


def test_a_soft_shutdown_lets_a_handler_end_that_is_quick_enough(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    worker = start_worker(options=QUICK, celery={"worker_soft_shutdown_timeout": 2}, groupjobs={"WORKER_TTL": 1.5})
    beats(store, worker)
    jobs.waits.enqueue("a", gate=str(gate))
    wait_until(lambda: ["a", "begins"] in journal())
    worker.send(signal.SIGQUIT)
    wait_until(lambda: (found := record(store, worker)) and found.leaving, 1, "the shutdown is announced")
    gate.touch()
    worker.wait()
    assert journal() == [["a", "begins"], ["a", "ends"]]
    assert (JobRun.objects.get().status, JobRun.objects.get().attempts) == ("SUCCEEDED", 1)
    wait_until(lambda: store.overview().workers == (), 3, "the watchdog has said goodbye")


def test_a_shutdown_by_remote_control_is_announced(
    start_worker: StartWorker, store: Store, journal: Journal, gate: Path
) -> None:
    worker = start_worker(options=QUICK)
    beats(store, worker)
    jobs.waits.enqueue("a", gate=str(gate))
    wait_until(lambda: ["a", "begins"] in journal())
    app.control.shutdown()
    wait_until(lambda: (found := record(store, worker)) and found.leaving, 5, "the shutdown is announced")
    gate.touch()
    worker.wait()
    assert store.overview().workers == ()
    assert JobRun.objects.get().status == "SUCCEEDED"
