"""Real Celery workers; what their jobs say, and gates that keep them waiting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groupjobs.store import Store, store_for
from groupjobs.store.replies import WorkerState
from tests.jobsapp import journal as journals
from tests.servers.waiting import wait_until
from tests.servers.worker import Worker

QUEUE = "default"
QUICK = ("--without-mingle", "--without-gossip", "--without-heartbeat")


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[Any]]]:
    """What jobs of this test have said so far."""
    path = tmp_path / "journal"
    monkeypatch.setenv(journals.VARIABLE, str(path))
    return lambda: journals.said(path)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A gate that opens with `touch()`."""
    return tmp_path / "gate"


@pytest.fixture
def store(transactional_db: None) -> Store:
    """The queue."""
    return store_for(QUEUE)


def record(store: Store, worker: Worker) -> WorkerState | None:
    """What Redis knows of a worker; its newest incarnation."""
    mine = [state for state in store.overview().workers if f":{worker.pid}:" in state.worker]
    return min(mine, key=lambda state: state.beat_age_ms, default=None)


def beats(store: Store, worker: Worker) -> WorkerState:
    """Wait until the worker's watchdog has beaten and the queue is open."""

    def known() -> WorkerState | None:
        found = record(store, worker)
        return found if found and found.slots and store.overview().state == "open" else None

    found = wait_until(known, 30, f"{worker.name} beats")
    assert found is not None
    return found


def watchdog(worker: Worker) -> int:
    """Process id of a worker's watchdog."""

    def found() -> list[int]:
        return [process.pid for process in worker.descendants() if "groupjobs.watchdog" in process.cmdline()]

    return wait_until(found, what="the watchdog runs")[0]
