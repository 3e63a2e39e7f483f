from __future__ import annotations

import pytest
import redis

from groupjobs.store.reference import Reference
from tests.store.travel import START, Timed


@pytest.fixture
def client(redis_client: redis.Redis) -> redis.Redis:
    """A raw client of an empty Valkey."""
    return redis_client


@pytest.fixture
def store(client: redis.Redis) -> Timed:
    """An open queue with a TTL of a minute; the test sets TIME."""
    made = Timed(client, prefix="test", queue="q", ttl=60)
    made.open(made.tick("w", 0).epoch)
    return made


@pytest.fixture
def reference() -> Reference:
    made = Reference(ttl=60, now=lambda: START)
    made.open(made.tick("w", 0).epoch)
    return made
