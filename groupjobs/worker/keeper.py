"""The keeper: a thread of the main process that starts the watchdog, and a new one when it dies."""

from __future__ import annotations

import logging
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

from django.conf import settings

from groupjobs.watchdog.assignment import Assignment
from groupjobs.watchdog.processes import STOPPED, look

logger = logging.getLogger("groupjobs")

FIRST_PAUSE: Final = 0.1  # seconds before a watchdog that died soon is replaced; doubles
LONGEST_PAUSE: Final = 5.0
SOON: Final = 10.0  # a watchdog that lived longer than this is replaced at once
LOOK: Final = 1.0  # seconds between two looks whether it stands still


class Keeper(threading.Thread):
    """Keeps one watchdog running until `finish`."""

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(name="groupjobs-keeper", daemon=True)
        self.assignment = assignment
        self.pid = 0
        self._finished = threading.Event()

    def run(self) -> None:
        """Start a watchdog, wait for its end, start the next."""
        pause = FIRST_PAUSE
        while not self._finished.is_set():
            began = time.monotonic()
            try:
                status: int | str = self._live_one()
            except OSError as error:
                status = str(error)
            if self._finished.is_set():
                break
            pause = FIRST_PAUSE if time.monotonic() - began > SOON else min(2 * pause, LONGEST_PAUSE)
            logger.warning("The watchdog %s has ended (%s); a new one starts.", self.pid, status)
            self._finished.wait(pause)

    def _live_one(self) -> int:
        """One watchdog's life: its exit status. Its standard output stays open for as long as it lives."""
        with _launch() as process:
            self.pid = process.pid
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(self.assignment.line())
                process.stdin.flush()
                self._wait(process, process.stdout.fileno())
            finally:
                process.kill()
        return process.returncode

    def _wait(self, process: subprocess.Popen[bytes], output: int) -> None:
        """Until it has ended, or is stopped and therefore no use."""
        poll = select.poll()
        poll.register(output, select.POLLIN)
        while True:
            if poll.poll(1000 * LOOK):
                if not os.read(output, 4096):
                    return
            elif (seen := look(process.pid)) is None or seen.state in STOPPED:
                return

    def finish(self, timeout: float) -> bool:
        """Start no other. Waits so many seconds for the end of the one that runs: whether it has ended."""
        self._finished.set()
        self.join(timeout)
        return not self.is_alive()


def _launch() -> subprocess.Popen[bytes]:
    """In a session of its own, so that a terminal's signals do not reach it."""
    path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "groupjobs.watchdog"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, **_settings_module()},
        start_new_session=True,
    )


def _settings_module() -> dict[str, str]:
    name = getattr(settings, "SETTINGS_MODULE", None)
    return {"DJANGO_SETTINGS_MODULE": name} if name else {}
