"""The append-only log of handlers: one line a write, so that no process can tear another's.

    B clock pid main run fence token     a handler begins
    T clock pid run fence                it lives
    E clock pid run fence outcome        it ends: ok, fail, doomed, or gone (somebody else has its run)
    K clock pid main                     the process is about to kill itself

Clocks are nanoseconds of the machine's monotonic clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.history import Attempt, Kill


class Log:
    """Appends to the log, from any process: opened again after a fork."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._pid = 0

    def write(self, kind: str, *words: object) -> None:
        """One line, in one write."""
        pid = os.getpid()
        if self._file is None or self._pid != pid:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._pid = pid
        line = " ".join(map(str, (kind, time.monotonic_ns(), pid, *words)))
        os.write(self._file, f"{line}\n".encode())


@dataclass
class Told:
    """What the log tells."""

    attempts: list[Attempt] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    _open: dict[tuple[int, int, int], Attempt] = field(default_factory=dict)

    def begin(self, at: float, pid: int, main: str, run: str, fence: str, token: str) -> None:
        """A handler begins."""
        attempt = Attempt(int(run), int(fence), token, pid, int(main), at)
        self.attempts.append(attempt)
        self._open[pid, attempt.run, attempt.fence] = attempt

    def live(self, at: float, pid: int, run: str, fence: str) -> None:
        """A handler lives."""
        self._open[pid, int(run), int(fence)].last = at

    def end(self, at: float, pid: int, run: str, fence: str, outcome: str) -> None:
        """A handler ends."""
        attempt = self._open.pop((pid, int(run), int(fence)))
        attempt.last = attempt.end = at
        attempt.outcome = outcome

    def kill(self, at: float, pid: int, main: str) -> None:
        """A process kills itself."""
        self.kills.append(Kill(pid, int(main), "self", at))


def read(lines: Iterable[str]) -> Told:
    """Attempts and kills, from the log's lines."""
    told = Told()
    verbs: dict[str, Callable[..., None]] = {"B": told.begin, "T": told.live, "E": told.end, "K": told.kill}
    for line in lines:
        kind, clock, pid, *words = line.split()
        verbs[kind](int(clock) / 1e9, int(pid), *words)
    return told


def busy(path: Path, tail: int = 65536) -> dict[int, float]:
    """Processes that execute a handler now, and for how many seconds, as far as the end of the log tells."""
    if not path.exists():
        return {}
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - tail))
        lines = file.read().decode().splitlines()[1:]
    begun: dict[int, float] = {}
    for kind, clock, pid, *_ in map(str.split, lines):
        if kind == "B":
            begun[int(pid)] = int(clock) / 1e9
        elif kind == "T":
            begun.setdefault(int(pid), int(clock) / 1e9)
        else:
            begun.pop(int(pid), None)
    return {pid: time.monotonic() - since for pid, since in begun.items()}
