"""How fast a backlog drains: grouped runs with their rows, and plain Celery tasks on the same broker."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from bench.world import GaveUp, wait

PLAIN = "bench.plain"


@dataclass(frozen=True)
class Drained:
    """One measurement: how many, and the rates of entering and of draining them, per second."""

    count: int
    entered: float
    drained: float


def grouped(job: Any, runs: int, groups: int) -> Drained:
    """Enter `runs` into a paused queue, resume it, and wait until every row has ended well."""
    from groupjobs import moves
    from groupjobs.models import JobRun

    JobRun.objects.all().delete()
    moves.hold("default", "", "benchmark")
    begun = time.monotonic()
    job.enqueue_many([{"group": number % groups} for number in range(runs)])
    entered = runs / (time.monotonic() - begun)
    _analyse()
    begun = time.monotonic()
    moves.resume("default", "")
    wait(lambda: not JobRun.objects.filter(status__in=["READY", "RUNNING"]).exists(), "the runs are done")
    seconds = time.monotonic() - begun
    succeeded = JobRun.objects.filter(status="SUCCEEDED", attempts=1).count()
    if succeeded != runs:
        raise GaveUp(f"{runs} enqueued, {succeeded} succeeded at the first attempt")
    return Drained(runs, entered, runs / seconds)


def _analyse() -> None:
    """What autovacuum does in daily life: the planner knows the table's size."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("vacuum analyze groupjobs_jobrun")


def plain(app: Any, client: Any, tasks: int) -> Drained:
    """Enter plain tasks while nobody consumes, let the worker consume, and wait until it has run them all."""
    queue, control = "bench-plain", app.control
    before = _total(control)
    begun = time.monotonic()
    with app.producer_pool.acquire(block=True) as producer:
        for number in range(tasks):
            app.send_task(PLAIN, args=[number], queue=queue, producer=producer)
    entered = tasks / (time.monotonic() - begun)
    begun = time.monotonic()
    control.add_consumer(queue, reply=True)
    wait(lambda: client.llen(queue) == 0 and not client.hlen("unacked"), "the plain tasks are done")
    seconds = time.monotonic() - begun
    control.cancel_consumer(queue, reply=True)
    done = _total(control) - before
    if done != tasks:
        raise GaveUp(f"{tasks} plain tasks sent, {done} run")
    return Drained(tasks, entered, tasks / seconds)


def _total(control: Any) -> int:
    answers = control.inspect(timeout=5).stats() or {}
    return sum(int(stats["total"].get(PLAIN, 0)) for stats in answers.values())
