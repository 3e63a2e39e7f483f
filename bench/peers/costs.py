"""What a phase cost: CPU time of workers and servers, script calls, commands of Redis, commits of PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

SCRIPTS: Final = ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_fcall", "cmdstat_evalsha_ro")


@dataclass(frozen=True)
class Costs:
    """CPU seconds per 1,000 jobs of workers and of servers; the rest per job."""

    workers: float
    servers: float
    scripts: float
    commands: float
    commits: float


class Meter:
    """Reads the clocks and counters now, and again at the end."""

    def __init__(self, workers: Sequence[int], servers: Any) -> None:
        self.workers = workers
        self.servers = servers
        self.before = self._read()

    def stop(self, jobs: int) -> Costs:
        """The difference, for so many jobs."""
        clocks = self._clocks()  # before the pause that PostgreSQL's counters need
        time.sleep(self.servers.flush)
        after = (*clocks, *self.servers.counters())
        workers, servers, scripts, commands, commits = (b - a for a, b in zip(self.before, after, strict=True))
        return Costs(1000 * workers / jobs, 1000 * servers / jobs, scripts / jobs, commands / jobs, commits / jobs)

    def _read(self) -> tuple[float, ...]:
        return (*self._clocks(), *self.servers.counters())

    def _clocks(self) -> tuple[float, float]:
        return cpu(self.workers), cpu(self.servers.pids())


def family(pids: Iterable[int]) -> Iterator[psutil.Process]:
    """These processes and what they started."""
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            yield from (process, *process.children(recursive=True))


def cpu(pids: Iterable[int]) -> float:
    """Seconds, with those of children that have ended."""
    total = 0.0
    for process in family(pids):
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def memory(pids: Iterable[int]) -> float:
    """Megabytes: the sum of the peaks of resident memory of each process."""
    total = 0
    for process in family(pids):
        with suppress(OSError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            total += next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
    return total / 1024
