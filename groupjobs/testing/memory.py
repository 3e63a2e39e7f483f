"""Stores in this process's memory in the place of Redis, and no bells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from groupjobs import bell, conf
from groupjobs.moves.publishing import outage
from groupjobs.store.connect import stand_in
from groupjobs.store.reference import Reference

_stores: dict[str, Reference] | None = None


def _now() -> int:
    """Redis's TIME, in ms: rows say when they are due by the wall clock."""
    return time.time_ns() // 1_000_000  # noqa: TID251


def _store(queue: str) -> Reference:
    assert _stores is not None
    if queue not in _stores:
        options = conf.current().queue(queue)
        store = Reference(
            queue=queue,
            ttl=conf.current().worker_ttl,
            consumers=options.consumers,
            group_concurrency=options.group_concurrency,
            rate=options.rate,
            now=_now,
        )
        store.open(store.tick("", 0).epoch)
        _stores[queue] = store
    return _stores[queue]


@contextmanager
def in_memory() -> Iterator[None]:
    """Inside, this process speaks to no Redis and no broker. Nested blocks share one memory."""
    global _stores
    if _stores is not None:
        yield
        return
    _stores = {}
    stand_in(_store)
    bell.mute(True)
    outage.ended()
    try:
        yield
    finally:
        stand_in(None)
        bell.mute(False)
        _stores = None
