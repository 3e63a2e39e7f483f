"""Processes of this machine that are not our children: whether they live, have ended, or are stopped."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc/self/stat").exists()
POLL: Final = 0.2 if PROC else 1.0  # seconds between two looks where no descriptor tells of the end of a process
DEAD: Final = "ZX"
STOPPED: Final = "Tt"


class Look(NamedTuple):
    """`state` is the letter that ps shows; `start` tells a process from a later one with the same number."""

    state: str
    parent: int
    start: str


def look(pid: int) -> Look | None:
    """What the system says of a process; None when there is none."""
    return _look_in_proc(pid) if PROC else _ask_ps(pid)


def _look_in_proc(pid: int) -> Look | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return Look(fields[0], int(fields[1]), fields[19])


def _ask_ps(pid: int) -> Look | None:
    command = ["ps", "-o", "state=,ppid=,lstart=", "-p", str(pid)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split(maxsplit=2)  # noqa: S603
    return Look(shown[0][:1], int(shown[1]), shown[2].strip()) if len(shown) == 3 else None


class Process:
    """A process under watch. On Linux a descriptor stands for it, so its number cannot come to mean another."""

    def __init__(self, pid: int, start: str = "") -> None:
        self.pid = pid
        self.fd: int | None = None
        self._gone = False
        try:
            self.fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._gone = True
        except (AttributeError, OSError):  # no such call here, or it is forbidden: we look again and again
            pass
        seen = look(pid)
        self.start = start or (seen.start if seen else "")
        self._gone = self._gone or seen is None or seen.start != self.start

    def ended(self) -> bool:
        """Whether it is dead, also when nobody has waited for it yet."""
        if not self._gone:
            self._gone = _readable(self.fd) if self.fd is not None else self._looks_dead()
        return self._gone

    def _looks_dead(self) -> bool:
        seen = look(self.pid)
        return seen is None or seen.state in DEAD or seen.start != self.start

    def stopped(self) -> bool:
        """Whether it stands still: SIGSTOP, a terminal's Ctrl-Z, a debugger."""
        seen = look(self.pid)
        return seen is not None and seen.state in STOPPED and seen.start == self.start

    def kill(self) -> None:
        """SIGKILL, unless it has ended."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.fd is not None:
                signal.pidfd_send_signal(self.fd, signal.SIGKILL)
            elif not self.ended():
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Stop watching it."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd, self._gone = None, True


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
