"""One worker is saturated and one is idle, both with Celery's default prefetch: how soon a run begins."""

from __future__ import annotations

import random
import time

from bench.recovery.fleet import Fleet

PREFETCH = "4"  # Celery's default


def measure(fleet: Fleet, count: int) -> list[float]:
    """Seconds from `enqueue` to the begin of the handler, so many times; the fleet's workers have two children."""
    from bench.work import jobs

    fleet.fill(1)
    gate = fleet.gate("saturated")
    for number in range(2):
        jobs.told.enqueue(group=f"saturated-{number}", name="saturated", gate=str(gate))
    fleet.journal.wait("saturated", 2)
    fleet.fill(2)
    seconds = []
    for number in range(count):
        time.sleep(random.uniform(0.1, 0.4))
        began = time.monotonic()
        jobs.told.enqueue(group=f"picked-{number}", name=f"picked-{number}")
        seconds.append(fleet.journal.wait(f"picked-{number}").at - began)
    gate.touch()
    return seconds
