"""The workers of this benchmark, which are killed and replaced, and the journal of what their handlers began."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

from bench import world
from bench.world import GaveUp, wait
from project.embedded import end


class Begin(NamedTuple):
    """A handler began: at which second of the monotonic clock, in which process, of which worker."""

    at: float
    pid: int
    main: int
    token: str


class Journal:
    """What handlers wrote into the file that BENCH_JOURNAL names."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begins(self, token: str) -> list[Begin]:
        """Begins of the runs with this token, oldest first."""
        found = []
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            at, pid, main, said = line.split()
            if said == token:
                found.append(Begin(int(at) / 1e9, int(pid), int(main), said))
        return found

    def wait(self, token: str, number: int = 1) -> Begin:
        """The begin with this number, from 1, of a token."""
        wait(lambda: len(self.begins(token)) >= number, f"begin {number} of {token}", 0.005)
        return self.begins(token)[number - 1]


@dataclass(frozen=True, slots=True)
class Worker:
    """A Celery worker."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        """Of the main process."""
        return self.process.pid

    def watchdog(self) -> int:
        """Process id of its watchdog."""
        for found in psutil.Process(self.pid).children():
            if "groupjobs.watchdog" in found.cmdline():
                return found.pid
        raise GaveUp(f"worker {self.pid} has no watchdog")


class Fleet:
    """Some workers with `children` children each; `env` overrides this process's environment."""

    def __init__(self, folder: Path, children: int = 2, **env: str) -> None:
        self.folder = folder
        self.journal = Journal(folder / f"journal-{time.monotonic_ns()}")
        self.workers: list[Worker] = []
        self._children = children
        self._env = {**os.environ, "BENCH_JOURNAL": str(self.journal.path), **env}
        self._numbers = itertools.count(1)

    def fill(self, size: int) -> None:
        """Start workers until there are so many, and wait until all of them take messages and beat."""
        self.launch(size)
        for worker in self.workers:
            wait(lambda worker=worker: world.ready(worker.log, worker.process.poll()), "a worker is ready")  # type: ignore[misc]
        wait(lambda: {str(worker.pid) for worker in self.workers} == beating(), "our workers beat, and no other")

    def launch(self, size: int) -> None:
        """Start workers until there are so many."""
        self.workers = [worker for worker in self.workers if worker.process.poll() is None]
        while len(self.workers) < size:
            log = self.folder / f"{self.journal.path.name}-{next(self._numbers)}.log"
            self.workers.append(Worker(world.launch(log.stem, log, self._children, self._env), log))

    def of(self, begin: Begin) -> Worker:
        """The worker in which a handler began."""
        return next(worker for worker in self.workers if worker.pid == begin.main)

    def gate(self, name: str) -> Path:
        """A file that is not there yet, for which handlers wait."""
        return self.folder / f"{self.journal.path.name}-{name}.gate"

    def end(self) -> None:
        """Warm shutdown of all."""
        for worker in self.workers:
            worker.process.send_signal(signal.SIGTERM)
        for worker in self.workers:
            end(worker.process, signal.SIGTERM, 20)


@contextmanager
def fleet(folder: Path, children: int = 2, **env: str) -> Iterator[Fleet]:
    """A fleet that ends with the block."""
    started = Fleet(folder, children, **env)
    try:
        yield started
    finally:
        started.end()


def beating() -> set[str]:
    """Process ids of the workers that Redis knows and that have beaten, once the queue is open."""
    from groupjobs.store import store_for

    told = store_for("default").overview()
    return {state.worker.split(":")[1] for state in told.workers if state.slots and told.state == "open"}
