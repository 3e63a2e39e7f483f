"""Sends signals to processes and remembers when, because the judge has to know."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field, replace

import psutil

from tests.chaos.history import Kill, Stop


@dataclass(slots=True)
class Record:
    """Kills and stops so far; a stop that has not ended yet ends at infinity."""

    kills: list[Kill] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)

    def kill(self, pid: int, main: int, kind: str) -> None:
        """SIGKILL; a process that has ended already is fine."""
        at = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills.append(Kill(pid, main, kind, at))

    def stop(self, pid: int, main: int, kind: str) -> None:
        """SIGSTOP."""
        at = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            self.stops.append(Stop(pid, main, kind, at, float("inf")))

    def resume(self, pid: int) -> None:
        """SIGCONT."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        at = time.monotonic()
        self.stops = [replace(s, end=at) if s.pid == pid and s.end == float("inf") else s for s in self.stops]

    def stopped(self) -> set[int]:
        """Processes that are stopped now."""
        return {stop.pid for stop in self.stops if stop.end == float("inf")}


def below(pid: int) -> list[psutil.Process]:
    """All processes below this one."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def command_of(process: psutil.Process) -> str:
    """The command line of a process, empty when it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
