"""One visit to a system: its workers are started, its work is entered and measured, and they are stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from bench.peers.costs import Costs, Meter, memory
from bench.peers.places import ROOT, environment
from bench.peers.systems import System
from bench.world import GaveUp, wait
from project import child
from project.embedded import end

Job = tuple[int, float]  # group, milliseconds
GATHER: Final = 2.0  # seconds in which a second worker may arrive at the gate
PICKUPS: Final = 20
LONGEST_PICKUPS: Final = 12.0  # seconds


@dataclass(frozen=True)
class Measured:
    """One phase: jobs, rates per second, what it cost."""

    jobs: int
    entered: float
    drained: float
    costs: Costs


@dataclass
class Visit:
    """Workers of one system that run, and its enqueue side."""

    system: System
    folder: Path
    servers: Any
    env: dict[str, str]
    trees: list[subprocess.Popen[bytes]] = field(default_factory=list)
    orders: subprocess.Popen[str] | None = None
    phase: int = 0

    def measure(self, jobs: Sequence[Job]) -> Measured:
        """Enter jobs while the workers wait at the gate, open it, and wait until all is settled."""
        self.phase += 1
        gate, done = self.folder / f"gate-{self.phase}", self.folder / f"done-{self.phase}"
        if not self.system.gated:
            self.stop()
            gate.touch()
        seconds = self._order({"phase": self.phase, "jobs": jobs})
        self.servers.analyse()
        if self.system.gated:
            self._gather()
        else:
            self.start()
            wait(lambda: _size(done) > 0, f"a worker of {self.system.name} has a job", 0.002)
        saved = self.servers.saved(self.system)
        meter = Meter([tree.pid for tree in self.trees], self.servers)
        begun = time.monotonic()
        gate.touch()
        wait(lambda: _size(done) >= len(jobs), f"{self.system.name} has run {len(jobs)} jobs", 0.005)
        wait(lambda: self.servers.left(self.system) == 0, f"{self.system.name} has settled its jobs", 0.005)
        least = saved + len(jobs) if self.system.saved else 0
        wait(lambda: self.servers.saved(self.system) >= least, f"{self.system.name} has saved its results", 0.005)
        spent = time.monotonic() - begun
        costs = meter.stop(len(jobs))
        if _size(done) != len(jobs):
            raise GaveUp(f"{self.system.name}: {len(jobs)} jobs enqueued, {_size(done)} completed")
        return Measured(len(jobs), len(jobs) / seconds, len(jobs) / spent, costs)

    def _gather(self) -> None:
        arrived = self.folder / f"arrived-{self.phase}"
        wait(lambda: _size(arrived) > 0, f"a worker of {self.system.name} has a job")
        begun = time.monotonic()
        while _size(arrived) < self.system.arrivals and time.monotonic() - begun < GATHER:
            time.sleep(0.005)

    def start(self) -> None:
        """Start the workers."""
        for number, command in enumerate(self.system.workers):
            log = self.folder / f"worker-{number}.log"
            self.trees.append(child.start(self.system.program(*command), log=log, env=self.env, folder=ROOT))

    def stop(self) -> None:
        """Stop the workers."""
        while self.trees:
            end(self.trees.pop(), signal.SIGTERM)

    def pickups(self) -> list[float]:
        """How long single jobs wait while the workers are idle, in seconds."""
        found = self.folder / "latencies"
        found.unlink(missing_ok=True)
        until = time.monotonic() + LONGEST_PICKUPS
        sent = 0
        while sent < PICKUPS and time.monotonic() < until:
            time.sleep(0.1)
            self._order({"pick": True})
            sent += 1
            wait(partial(_lines, found, sent), "a job is picked up", 0.002)
        return [float(line) for line in found.read_text().split()]

    def memory(self) -> float:
        """Megabytes that the workers' processes had at their peaks, together."""
        return memory([tree.pid for tree in self.trees])

    def _order(self, order: dict[str, Any]) -> float:
        assert self.orders is not None
        assert self.orders.stdin is not None
        assert self.orders.stdout is not None
        self.orders.stdin.write(json.dumps(order) + "\n")
        self.orders.stdin.flush()
        answer = self.orders.stdout.readline()
        if not answer:
            raise GaveUp(f"the enqueue side of {self.system.name} ended: {tail(self.folder / 'enter.log')}")
        return float(json.loads(answer)["seconds"])


def _lines(path: Path, least: int) -> bool:
    return path.exists() and path.read_text().count("\n") >= least


def tail(log: Path) -> str:
    """The end of a log."""
    return log.read_text(errors="replace")[-1500:] if log.exists() else ""


@contextmanager
def visiting(system: System, servers: Any, folder: Path) -> Iterator[Visit]:
    """Empty servers, running workers; all ends with the block."""
    folder.mkdir()
    env = {**os.environ, **system.settings, **servers.addresses(system), "BENCH_FOLDER": str(folder)}
    env |= {"PYTHONPATH": str(ROOT), "BENCH_NODE": str(environment(system.name))}
    servers.prepare(system, env)
    visit = Visit(system, folder, servers, env)
    try:
        visit.start()
        with (folder / "enter.log").open("w") as log_file:
            visit.orders = _enter(system, env, log_file)
            yield visit
    finally:
        if visit.orders is not None:
            visit.orders.kill()
            visit.orders.wait()
        visit.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _enter(system: System, env: dict[str, str], log: IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        system.program(*system.enter), env=env, cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
    )  # fmt: skip


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
