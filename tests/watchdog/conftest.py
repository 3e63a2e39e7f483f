"""A real watchdog whose worker is this test process; children of the pool are processes that sleep."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from django.conf import settings
from django.test import override_settings

from groupjobs import conf
from groupjobs.store import Consumer, Publication, Store, store_for
from groupjobs.store.replies import ConsumerState, WorkerState
from groupjobs.watchdog.assignment import Assignment, told
from groupjobs.watchdog.home import Home, incarnation
from groupjobs.watchdog.processes import Process
from groupjobs.worker import identity
from groupjobs.worker.executions import Executions
from groupjobs.worker.keeper import Keeper
from project.embedded import EmbeddedValkey
from tests.servers.waiting import wait_until

TTL = 1.0
QUEUE = "default"


@pytest.fixture
def store(valkey: EmbeddedValkey) -> Iterator[Store]:
    """The open queue; silent workers are dead after one second. By URL, so the watchdog needs no settings."""
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "WORKER_TTL": TTL, "REDIS": valkey.url}):
        store = store_for(QUEUE)
        store.open(store.tick("", 0).epoch)
        yield store


def holds(condition: Callable[[], object], seconds: float) -> None:
    """AssertionError as soon as the condition is false; answers after so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition()
        time.sleep(0.02)


class Watched(NamedTuple):
    """This process as a worker."""

    store: Store
    home: Home
    keeper: Keeper
    executions: Executions
    worker: str

    def record(self) -> WorkerState | None:
        """What Redis knows of it."""
        return {state.worker: state for state in self.store.overview().workers}.get(self.worker)

    def consumers(self) -> dict[str, ConsumerState]:
        """Nonce -> what Redis knows of its consumers."""
        return {state.nonce: state for state in self.store.overview().consumers}

    def serves(self, nonce: str, pid: int, run: int) -> Consumer:
        """An execution in process `pid` registers, and takes one run."""
        self.store.enqueue([Publication(run, f"group {run}")])
        consumer = Consumer(nonce, self.worker, pid)
        self.executions.register(nonce, pid)
        assert self.store.step(consumer, 1, 1).reservations
        return consumer


@pytest.fixture
def watched(store: Store) -> Iterator[Watched]:
    """This process has a watchdog, which has beaten."""
    home = Home.make()
    worker = incarnation(os.getpid())
    identity.settle(home, worker)
    home.serve(QUEUE, worker)
    keeper = Keeper(Assignment(os.getpid(), str(home.folder), 2, logging.INFO, told(conf.current())))
    keeper.start()
    watched = Watched(store, home, keeper, Executions(QUEUE, worker), worker)
    try:
        wait_until(lambda: (found := watched.record()) and found.slots, what="the first beat")
        yield watched
    finally:
        home.finish()
        assert keeper.finish(10)
        identity.depart()
        home.remove()


@pytest.fixture
def child(watched: Watched) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts children of the pool."""
    started = []

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        started.append(process)
        watched.home.children.put(str(process.pid), {"pid": process.pid, "start": Process(process.pid).start})
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
