"""Clients of Redis, lazily one per process and purpose: a fork makes new ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from groupjobs.store.store import Store

if TYPE_CHECKING:
    from groupjobs.conf import Settings

Purpose = Literal["enqueue", "serve", "beat", "look"]
SCHEMES = ("redis://", "rediss://", "unix://")

_stand_in: Callable[[str], Any] | None = None
_clients: dict[tuple[int, str, str], Any] = {}
_stores: dict[tuple[int, str, str], tuple[Any, Store]] = {}


def timeouts(settings: Settings, purpose: Purpose) -> dict[str, Any]:
    """Seconds to connect and to read, and how often a call is sent again.

    An enqueue must not hold its caller up; a beat must not be late because an earlier one still waits; a
    look of a person or a probe has to end in a second or two, whatever the server does.
    """
    seconds = {"enqueue": 0.4, "serve": 5.0, "beat": settings.worker_ttl / 6, "look": 0.8}[purpose]
    retries = 1 if purpose == "serve" else 0
    return {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "retry": Retry(ConstantBackoff(0.05), retries),
    }


def connect(settings: Settings, purpose: Purpose = "serve") -> Any:
    """The client of `settings.redis`: a CACHES alias of django-redis, a URL, or a dotted factory."""
    key = (os.getpid(), settings.redis, f"{purpose} {settings.worker_ttl}")
    if key not in _clients:
        _clients[key] = build(settings.redis, timeouts(settings, purpose))
    return _clients[key]


def build(source: str, options: Mapping[str, Any]) -> Any:
    """A new client. Only the pool of an alias is asked for, so no connection is made yet."""
    if source.startswith(SCHEMES):
        return redis.Redis.from_url(source, **options)
    if "." in source:
        module, _, name = source.rpartition(".")
        return getattr(import_module(module), name)(**options)
    return cloned(source, options)


def cloned(alias: str, options: Mapping[str, Any]) -> Any:
    """The alias's client over a pool of its own with our timeouts; a Sentinel's pool is used as it is."""
    from django_redis import get_redis_connection

    client = get_redis_connection(alias)
    pool = client.connection_pool
    if type(pool) not in (redis.ConnectionPool, redis.BlockingConnectionPool):
        return client
    kwargs = {**pool.connection_kwargs, "decode_responses": False, **options}
    return redis.Redis.from_pool(redis.ConnectionPool(connection_class=pool.connection_class, **kwargs))


def store_for(queue: str, purpose: Purpose = "serve") -> Store:
    """The store of a queue under the current settings, cached; of one that they name no more, with defaults."""
    from groupjobs import conf

    if _stand_in is not None:
        instead: Store = _stand_in(queue)
        return instead
    settings = conf.current()
    key = (os.getpid(), queue, purpose)
    made = _stores.get(key)
    if made is None or made[0] is not settings:
        made = _stores[key] = (settings, store_of(settings, queue, purpose))
    return made[1]


def stand_in(factory: Callable[[str], Any] | None) -> None:
    """From now on every store of this process comes from here; None: from Redis. For tests."""
    global _stand_in
    _stand_in = factory


def store_of(settings: Settings, queue: str, purpose: Purpose) -> Store:
    """A new store of this queue."""
    options = settings.queue(queue)
    return Store(
        connect(settings, purpose),
        prefix=settings.prefix,
        queue=queue,
        ttl=settings.worker_ttl,
        consumers=options.consumers,
        group_concurrency=options.group_concurrency,
        rate=options.rate,
    )
