"""Leases of the dead, built with the real scripts, and states of Redis that no script of ours would make."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from django.db.models.functions import Now

from groupjobs.models import JobRun
from groupjobs.store import Consumer, Reservation, Store, keys
from tests.core.rows import again, change
from tests.core.serving import pk_of
from tests.jobsapp import jobs

_numbers = itertools.count(1)


def someone() -> Consumer:
    """A consumer of a worker that has not been seen yet."""
    number = next(_numbers)
    return Consumer(f"nonce{number}", f"there:{number}:gone", number)


def reserve(store: Store, consumer: Consumer, want: int = 64) -> tuple[Reservation, ...]:
    """What this consumer gets; it has done nothing with it."""
    return store.step(consumer, 1, want).reservations


def begin(consumer: Consumer, reservations: Sequence[Reservation]) -> None:
    """Their rows say RUNNING, as this consumer would have written them."""
    for reservation in reservations:
        JobRun.objects.filter(pk=reservation.run).update(
            status="RUNNING",
            fence=reservation.fence,
            alone=reservation.alone,
            worker=consumer.worker,
            consumer=consumer.nonce,
            started_at=Now(),
            last_attempted_at=Now(),
        )


def vanish(store: Store, consumer: Consumer) -> None:
    """Its worker is unknown from now on: its leases are ghosts, which no step heals."""
    store.client.zrem(f"{store.base}:workers", consumer.worker)


def live(store: Store, consumer: Consumer) -> None:
    """Its worker's watchdog beats, and lists it."""
    store.beat(consumer.worker, 1, {consumer.nonce: consumer.pid})


def taken(store: Store, runs: Sequence[Any], begun: bool = True, consumer: Consumer | None = None) -> Consumer:
    """All that is ready is with one consumer, whose rows say so if `begun`."""
    consumer = consumer or someone()
    reservations = reserve(store, consumer)
    assert {reservation.run for reservation in reservations} == {pk_of(run) for run in runs}
    if begun:
        begin(consumer, reservations)
    return consumer


def some(count: int, **options: Any) -> list[Any]:
    """Runs, each in a group of its own."""
    return [jobs.note.using(**options).enqueue(label=f"x{n}", group=f"x{n}") for n in range(count)]


def key(store: Store, *parts: str) -> str:
    """A key of the queue."""
    return ":".join((store.base, *parts))


def member(run: Any) -> str:
    """A run as Redis names it."""
    return keys.member(pk_of(run))


def row(run: Any) -> JobRun:
    """Its row."""
    return again(pk_of(run))


def lost(store: Store, *results: Any) -> list[Any]:
    """These runs, each begun alone by a worker that is no more."""
    for result in results:
        consumer = someone()
        reservations = reserve(store, consumer, 1)
        assert [reservation.run for reservation in reservations] == [pk_of(result)]
        begin(consumer, reservations)
        vanish(store, consumer)
    return list(results)


def abandoned(job: Any, count: int = 1, **kwargs: Any) -> list[JobRun]:
    """Rows that were abandoned, of which nobody has been told."""
    results = [job.enqueue(label=str(number), **kwargs) for number in range(count)]
    return [change(row(result), status="ABANDONED", reason="too_many_losses") for result in results]
