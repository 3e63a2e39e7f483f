"""A real Celery worker in processes of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from project import child
from tests.servers.environment import ROOT
from tests.servers.waiting import wait_until

READY_TIMEOUT = 30.0
STOP_TIMEOUT = 20.0


class Worker:
    """`python -m celery -A project worker`: starts with `start()` or `with`, in a session of its own.

    `queues` are names of Celery queues (None: Celery's default), `pool` one of prefork, threads, solo.
    """

    def __init__(
        self,
        name: str,
        log: Path,
        env: Mapping[str, str],
        *,
        pool: str = "prefork",
        concurrency: int = 2,
        queues: Sequence[str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.log = log
        self.env = dict(env)
        self.command = [
            *(sys.executable, "-m", "celery", "-A", "project", "worker", "--loglevel", "INFO"),
            *("--hostname", f"{name}@%h", "--pool", pool, "--concurrency", str(concurrency)),
            *(("--queues", ",".join(queues)) if queues else ()),
            *options,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The main process; AssertionError before `launch()`."""
        assert self._process is not None, f"worker {self.name} was not started"
        return self._process

    @property
    def pid(self) -> int:
        """Of the main process."""
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether the main process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, timeout: float = READY_TIMEOUT) -> Self:
        """Launch it and wait until it is ready to take messages."""
        self.launch()
        self.wait_ready(timeout)
        return self

    def launch(self) -> Self:
        """Start its processes without waiting."""
        self._process = child.start(self.command, log=self.log, env=self.env, folder=ROOT)
        return self

    def wait_ready(self, timeout: float = READY_TIMEOUT) -> None:
        """Until Celery says so; AssertionError with the log when it ends before that."""
        wait_until(self._ready, timeout, f"worker {self.name} is ready")

    def _ready(self) -> bool:
        assert self.alive, f"worker {self.name} ended with status {self.process.poll()}:\n{self.tail()}"
        return f"{self.name}@" in (text := self.text()) and " ready." in text

    def descendants(self) -> list[psutil.Process]:
        """All processes below the main one: pool children, watchdog, and theirs."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def children(self) -> list[int]:
        """Process ids of the prefork pool's children, which run the same command as the main process."""
        return sorted(found.pid for found in self.descendants() if _is_celery(found))

    def send(self, number: signal.Signals, pid: int | None = None) -> None:
        """Signal the main process, or one of its descendants."""
        assert pid is None or pid in [found.pid for found in self.descendants()], f"{pid} is not of worker {self.name}"
        os.kill(pid or self.pid, number)

    def kill(self) -> None:
        """SIGKILL the main process and wait for its end; what it leaves behind is not touched."""
        self.process.kill()
        self.process.wait(10)

    def stop(self, timeout: float = STOP_TIMEOUT) -> int:
        """Warm shutdown (SIGTERM): the exit status; AssertionError after `timeout` seconds."""
        if self.alive:
            self.send(signal.SIGTERM)
        return self.wait(timeout)

    def wait(self, timeout: float = STOP_TIMEOUT) -> int:
        """Until the main process has ended: its exit status; AssertionError after `timeout` seconds."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"worker {self.name} did not end within {timeout:g} s:\n{self.tail()}") from None

    def end(self) -> None:
        """Leave nothing of it running, by force where needed. May be called at any time."""
        if self._process is None:
            return
        left = self.descendants()
        with contextlib.suppress(AssertionError):
            for process in [self.process.pid, *(found.pid for found in left)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)
            self.stop(10)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for found in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                found.kill()
        self.process.wait()

    def text(self) -> str:
        """Everything that it has written."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self, lines: int = 60) -> str:
        """The last lines that it has written."""
        return child.tail(self.log, lines)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def _is_celery(process: psutil.Process) -> bool:
    try:
        command = process.cmdline()
    except psutil.Error:
        return False
    return "celery" in command and "worker" in command
