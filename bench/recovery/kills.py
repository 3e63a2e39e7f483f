"""Seconds from a SIGKILL to the next begin of a run of the group that the dead process was serving."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable

from bench.recovery.fleet import Begin, Fleet
from bench.world import GaveUp, wait

Kill = Callable[[Begin], None]


def child(fleet: Fleet) -> Kill:
    """SIGKILL of the process that runs the handler."""
    return lambda begin: os.kill(begin.pid, signal.SIGKILL)


def main(fleet: Fleet) -> Kill:
    """SIGKILL of its worker's main process."""
    return lambda begin: os.kill(begin.main, signal.SIGKILL)


def both(fleet: Fleet) -> Kill:
    """SIGKILL of its worker's watchdog and of its main process, as if the host was lost."""

    def kill(begin: Begin) -> None:
        watchdog = fleet.of(begin).watchdog()
        os.kill(watchdog, signal.SIGKILL)
        os.kill(begin.main, signal.SIGKILL)

    return kill


def measure(fleet: Fleet, how: Callable[[Fleet], Kill], count: int) -> list[float]:
    """So many kills, one after the other, each with two workers up."""
    kill, name = how(fleet), f"{how.__name__}-{time.monotonic_ns()}"
    seconds = []
    for number in range(count):
        seconds.append(_once(fleet, kill, f"{name}-{number}", how is child))
        sys.stderr.write(f"{how.__name__} {number + 1}: {1000 * seconds[-1]:.0f} ms\n")
    return seconds


def _once(fleet: Fleet, kill: Kill, token: str, anywhere: bool) -> float:
    """`anywhere`: the worker lives on, and its other processes may serve the group, too."""
    from bench.work import jobs

    fleet.fill(2)
    gate = fleet.gate(token)
    jobs.told.enqueue_many([{"group": token, "name": token, "gate": str(gate)} for _ in range(3)])
    first = fleet.journal.wait(token)
    time.sleep(random.uniform(0.3, 1.0))  # anywhere between two beats and two ticks
    killed = time.monotonic()
    kill(first)
    again = fleet.journal.wait(token, 2)
    gate.touch()
    if again.main == first.main and not anywhere:
        raise GaveUp(f"{token} began again in the worker that was killed")
    wait(lambda: _ended(token), f"{token} has ended")
    return again.at - killed


def _ended(group: str) -> bool:
    from groupjobs.models import JobRun

    return JobRun.objects.filter(group=group, status="SUCCEEDED").count() == 3


def percentile(seconds: list[float], share: float) -> int:
    """Milliseconds that this share of the values does not exceed."""
    ordered = sorted(seconds)
    return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))])
