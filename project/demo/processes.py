"""The programs that the demo starts: each writes to a log of its own and ends with the demo."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from project.demo.failure import DemoFailed

PR_SET_PDEATHSIG = 1
PAUSE = 0.05  # seconds between two looks


class Program:
    """A running program and its log."""

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], folder: Path, log: Path) -> None:
        """Start it in a process group of its own, so that Ctrl-C reaches the demo alone."""
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                argv,
                env=dict(env),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=_end_with_parent(),  # noqa: PLW1509 (the function only calls the kernel)
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def check(self) -> None:
        """Raise DemoFailed if the program has ended by itself."""
        status = self._process.poll()
        if status is not None:
            raise DemoFailed(f"the {self.name} ended by itself with status {status}:\n{self.tail()}")

    def finish(self, seconds: float) -> None:
        """Wait until it ends; raise DemoFailed unless it does so in time with status 0."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"the {self.name} did not end within {seconds:.0f} s:\n{self.tail()}") from None
        if status:
            raise DemoFailed(f"the {self.name} ended with status {status}:\n{self.tail()}")

    def wait_for(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until `ready()`; raise DemoFailed if the program ends or the time is over."""
        deadline = time.monotonic() + seconds
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise DemoFailed(f"the {self.name} is not ready after {seconds:.0f} s:\n{self.tail()}")
            time.sleep(PAUSE)

    def text(self) -> str:
        """What it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def tail(self, lines: int = 25) -> str:
        """The last lines of its log."""
        return "\n".join(f"  | {line}" for line in self.text().splitlines()[-lines:]) or "  | (it wrote nothing)"

    def kill(self) -> None:
        """SIGKILL the program itself, as an out-of-memory killer would."""
        self._process.kill()
        self._process.wait()

    def stop(self, seconds: float = 20.0) -> None:
        """Ask it to end; after `seconds`, and for whatever it left behind, SIGKILL its process group."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def _end_with_parent() -> Callable[[], None] | None:
    """For the child between fork and exec: a kill of the demo ends it too (Linux)."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return ask
