"""Count what became of runs, by job: each process adds up and tells Redis once a second.

So the numbers belong to the fleet: no scrape depends on which process answers it, and none is lost with a worker
child but what it counted in its last second.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import Counter, defaultdict
from typing import Any, Final

from groupjobs import conf, signals
from groupjobs.outage import Outage
from groupjobs.store import store_for

PAUSE: Final = 1.0  # seconds between two tellings
MOST_JOBS: Final = 1_000  # names that a process counts by; further ones are counted together
OTHER: Final = "other"
COUNTED: Final = {
    "succeeded": signals.run_succeeded,
    "failed": signals.run_failed,
    "retried": signals.run_retried,
    "lost": signals.run_lost,
    "cancelled": signals.run_cancelled,
    "abandoned": signals.run_condemned,
}
RUN: Final = "run"
MILLISECONDS: Final = "ms"


def connect() -> None:
    """Count from now on in this process and those that it forks; safe to call again."""
    for status, signal in COUNTED.items():
        signal.connect(_receiver(status), weak=False, dispatch_uid="groupjobs.metrics")


def disconnect() -> None:
    """Count no more."""
    for signal in COUNTED.values():
        signal.disconnect(dispatch_uid="groupjobs.metrics")


def _receiver(status: str) -> Any:
    def add(queue: str, job: str, seconds: float | None = None, **_: Any) -> None:
        _tally().add(queue, status, job, seconds)

    return add


class Tally:
    """What one process has counted and not told yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[str, Counter[str]] = defaultdict(Counter)
        self._jobs: set[str] = set()
        self._some = threading.Event()
        self._outage = Outage("Redis (metrics)")
        self._thread: threading.Thread | None = None

    def add(self, queue: str, status: str, job: str, seconds: float | None) -> None:
        """One run of a job came to this; `seconds` are those of its handler."""
        with self._lock:
            job = job if job in self._jobs or len(self._jobs) < MOST_JOBS else OTHER
            self._jobs.add(job)
            self._numbers[queue][f"{RUN} {status} {job}"] += 1
            if seconds is not None:
                self._numbers[queue][f"{MILLISECONDS} {job}"] += round(1000 * seconds)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="groupjobs-metrics", daemon=True)
                self._thread.start()
        self._some.set()

    def flush(self) -> None:
        """Tell Redis. What it does not take is kept for the next time."""
        with self._lock:
            numbers, self._numbers = self._numbers, defaultdict(Counter)
            self._some.clear()
        for queue, counts in numbers.items():
            if queue not in conf.current().queues:
                continue
            try:
                store_for(queue, "enqueue").count(counts)
            except Exception as error:
                self._outage.failed(error, "counts wait until it is back")
                with self._lock:
                    self._numbers[queue].update(counts)
            else:
                self._outage.ended()

    def _run(self) -> None:
        while self._some.wait():
            threading.Event().wait(PAUSE)
            self.flush()
            if self._numbers:
                self._some.set()


_tallies: dict[int, Tally] = {}  # by process: a fork begins a new one


def _tally() -> Tally:
    pid = os.getpid()
    return _tallies.get(pid) or _tallies.setdefault(pid, Tally())


@atexit.register
def flush() -> None:
    """Tell Redis now what this process has counted."""
    if os.getpid() in _tallies:
        _tallies[os.getpid()].flush()
