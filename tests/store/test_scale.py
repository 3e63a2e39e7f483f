"""What a call costs does not grow with what waits, and nothing is left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest
import redis

from groupjobs.store import Consumer, Outcome, Publication, Store
from tests.store.acting import ONE, TWO, all_
from tests.store.test_bounds import CONSTANT, counted, families

T = TypeVar("T")

MOST = 3_000  # commands in one script call: a few milliseconds
RUNS = int(os.environ.get("RUNS", "20000"))  # a hundred thousand take half a minute


@pytest.fixture
def real(client: redis.Redis) -> Store:
    """A store under the server's own TIME."""
    store = Store(client, prefix="test", queue="real", ttl=15)
    store.open(store.tick("w", 0).epoch)
    return store


def served(store: Store, who: Consumer = ONE, want: int = 1000) -> list[int]:
    """What one consumer gets, call by call, until nothing is ready."""
    told: list[Outcome] = []
    sizes: list[int] = []
    while not (reply := store.step(who, len(sizes) + 1, want, told)).ended:
        told = all_("done", reply.reservations)
        sizes.append(len(told))
    return sizes


def cost(store: Store, call: Callable[[], T]) -> tuple[int, T]:
    """How many commands a script call took, and its answer."""
    answers: list[T] = []
    return counted(store, lambda: answers.append(call())), answers[0]


def test_f1_everything_is_listed_in_pages(real: Store) -> None:
    """Many groups, and one with a long line."""
    real.enqueue([Publication(run, f"g{run}") for run in range(1, 10_001)])
    real.enqueue([Publication(run, "long") for run in range(10_001, 20_001)])
    pages = [cost(real, real.entries)]
    while cursor := pages[-1][1].cursor:
        pages.append(cost(real, partial(real.entries, cursor)))
    assert {run for _, page in pages for run, _ in page.entries} == set(range(1, 20_001))
    assert max(commands for commands, _ in pages) < MOST
    assert max(len(page.entries) for _, page in pages) < 10_000
    looks: list[Callable[[], object]] = [
        real.overview,
        lambda: real.snapshot([(run, f"g{run}") for run in range(1, 501)]),
        lambda: real.snapshot([(run, "long") for run in range(10_001, 10_501)]),
        lambda: real.tick("w", 1),
    ]
    assert max(counted(real, look) for look in looks) < 10 * MOST


def costs(store: Store, first: int) -> list[int]:
    """Of two steps that serve three runs, and of a tick."""
    store.enqueue([Publication(first + n, f"free{n}") for n in range(3)])
    consumer = Consumer(f"c{first}", "w", first)
    one, reply = cost(store, lambda: store.step(consumer, 1, 64))
    assert [r.run for r in reply.reservations] == [first, first + 1, first + 2]
    two, reply = cost(store, lambda: store.step(consumer, 2, 64, all_("done", reply.reservations)))
    assert reply.ended
    return [one, two, counted(store, lambda: store.tick("w", 1))]


def test_f2_ten_thousand_blocked_groups_change_nothing(real: Store) -> None:
    """Held by a person, waiting for a time, with a consumer."""
    real.hold("nobody", 1, True)
    few = costs(real, 1)
    for number in range(500):
        real.hold(f"held{number}", 1, True)
    real.enqueue([Publication(10_000 + n, f"held{n}") for n in range(500)])
    real.enqueue([Publication(20_000 + n, f"late{n}", delay_ms=3_600_000) for n in range(4_500)])
    real.enqueue([Publication(30_000 + n, f"busy{n}") for n in range(5_000)])
    for number in range(1, 6):
        real.step(Consumer(f"busy{number}", "w", number), 1, 1000)
    real.enqueue([Publication(40_000 + n, f"busy{n}") for n in range(5_000)])
    assert real.overview().ready == 0
    many = costs(real, 100)
    assert max(b - a for a, b in zip(few, many, strict=True)) < 10, (few, many)


def test_f4_after_many_runs_of_ten_thousand_groups_the_keys_are_as_before(real: Store) -> None:
    real.enqueue([Publication(run, "first") for run in range(1, 11)])
    served(real)
    before = real.client.dbsize()
    real.enqueue([Publication(run, f"g{run % 10_000}") for run in range(11, RUNS + 11)])
    assert sum(served(real, TWO)) == RUNS
    assert real.client.dbsize() == before
    assert families(real) <= CONSTANT


def test_f6_ten_thousand_due_at_once_are_served_at_full_speed(real: Store) -> None:
    """As many calls as if they had never waited for a time; promotion is bounded in each."""
    real.enqueue([Publication(run, f"g{run % 100}", due_ms=1, yields=True) for run in range(1, 5_001)])
    real.enqueue([Publication(run, f"g{run}", delay_ms=1, yields=True) for run in range(5_001, 10_001)])
    deadline = time.monotonic() + 5
    while real.client.zcard(f"{real.base}:scheduled") == 5_000 and time.monotonic() < deadline:
        real.ping()
    sizes = served(real, want=64)
    assert sum(sizes) == 10_000
    assert len(sizes) <= 10_000 / 64 + 10, sizes
