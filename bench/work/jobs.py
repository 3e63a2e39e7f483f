"""The jobs: no-op handlers, and one that tells when it begins."""

import os
import time
from pathlib import Path

from celery import shared_task

from bench.peers.handling import did, picked_up
from groupjobs import Retry, job


@job(group="g:{group}")
def noop(group: int) -> None:
    """Nothing, one at a time per group."""


@job(group="g:{group}", atomic=True)
def atomic_noop(group: int) -> None:
    """Nothing, in a transaction of its own with its terminal row."""


@job(group="{group}", max_losses=1000)
def named(group: str) -> None:
    """Nothing, in a group with this name."""


@job(group="{group}", max_attempts=5)
def later(group: str) -> None:
    """Try again in an hour; the group waits."""
    raise Retry(after=3600)


@shared_task(name="bench.plain", acks_late=True, ignore_result=True)
def plain(group: int) -> None:
    """Nothing: Celery's own cost of a task."""


@job(group="g:{group}")
def gated(group: int, phase: int, milliseconds: float) -> None:
    """The job of the comparison with other queues."""
    did(phase, milliseconds)


@job
def pick(sent: float) -> None:
    """A job that says how long it waited."""
    picked_up(sent)


TALLY: list[int] = []  # one entry for each run of `tally` in this process


@job(group="g:{group}")
def tally(group: int) -> None:
    """Nothing, counted."""
    TALLY.append(group)


@job(group="{group}", max_losses=1000)
def told(group: str, name: str, gate: str = "") -> None:
    """Tell the journal BENCH_JOURNAL that a handler begins, and stay until the file `gate` is there."""
    file = os.open(os.environ["BENCH_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{time.monotonic_ns()} {os.getpid()} {os.getppid()} {name}\n".encode())
    os.close(file)
    while gate and not Path(gate).exists():
        time.sleep(0.02)
