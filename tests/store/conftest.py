from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest
import redis

from tests.store.invariants import Limits, check
from tests.store.travel import Timed, TimedReference

Side = Timed | TimedReference


class MakeStore(Protocol):
    def __call__(self, **options: Any) -> Side: ...


@pytest.fixture
def client(redis_client: redis.Redis) -> redis.Redis:
    """A raw client of an empty Valkey."""
    return redis_client


@pytest.fixture(params=["scripts", "reference"])
def make_store(request: pytest.FixtureRequest, client: redis.Redis) -> Iterator[MakeStore]:
    """Makes an open queue with a TTL of a minute, whose TIME the test sets: one body, both stores."""
    made: list[tuple[Timed, Limits]] = []

    def make(**options: Any) -> Side:
        store: Side = TimedReference(**options) if request.param == "reference" else Timed(client, **options)
        if isinstance(store, Timed):
            made.append((store, Limits(options.get("group_concurrency", 1), options.get("rate"))))
        store.open(store.tick("w", 0).epoch)
        return store

    yield make
    for store, limits in made:
        check(store, limits)


@pytest.fixture
def store(make_store: MakeStore) -> Side:
    return make_store()


@pytest.fixture
def scripts(client: redis.Redis) -> Iterator[Timed]:
    """The scripts alone, for what only they have: keys, arguments, bounds."""
    store = Timed(client)
    store.open(store.tick("w", 0).epoch)
    yield store
    check(store)
