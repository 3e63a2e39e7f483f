"""The programs that the demo starts: each writes to a log of its own and ends with the demo."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from project import child, embedded
from project.demo.failure import DemoFailed

PAUSE = 0.05  # seconds between two looks


class Program:
    """A running program, in a session of its own so that Ctrl-C reaches the demo alone."""

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], folder: Path, log: Path) -> None:
        self.name, self.log = name, log
        self._process = child.start(argv, log=log, env=env, folder=folder)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Whether a Celery worker has said that it is."""
        return " ready." in self.text()

    @property
    def status(self) -> int | None:
        """How it ended (minus the signal's number); None while it runs."""
        return self._process.poll()

    def check(self) -> None:
        """Raise DemoFailed if the program has ended by itself."""
        if self.status is not None:
            raise DemoFailed(f"the {self.name} ended by itself with status {self.status}:\n{self.tail()}")

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
        """Everything that it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def tail(self, lines: int = 25) -> str:
        """The last lines of its log, indented."""
        return "\n".join(f"  | {line}" for line in child.tail(self.log, lines).splitlines()) or "  | (it wrote nothing)"

    def kill(self) -> None:
        """SIGKILL the program itself, not its children, as an out-of-memory killer would."""
        self._process.kill()
        self._process.wait()

    def stop(self, seconds: float = 20.0) -> None:
        """Ask it to end; after `seconds`, and for whatever it left behind, SIGKILL its process group."""
        embedded.end(self._process, signal.SIGTERM, seconds)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
