"""What a handler leaves behind on this thread's database connections: no transaction may outlive it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from django.db import DatabaseError, connections, transaction

from groupjobs.consumer.gate import Gate

UNFINISHED: Final = (1, 2, 3)  # libpq: active, in a transaction, in a failed one


@contextmanager
def no_transaction_left(gate: Gate) -> Iterator[None]:
    """What runs inside must not end in the middle of a transaction, nor of a query.

    A transaction that is left open is rolled back with its connection, and TransactionManagementError
    raised, unless the handler raised something itself. An interrupt through the gate may have come
    between a query and its answer, so connections that were used until then are closed.
    """
    before = _open_transactions()  # there are some in a test that is itself one
    try:
        yield
    finally:
        left_open = {alias: depth for alias, depth in _open_transactions().items() if depth != before.get(alias)}
        for alias in left_open:
            if alias in before:
                _leave(connections[alias], before[alias])
            else:
                _discard(connections[alias])
        if gate.used:
            _close_all_but(before)
    if left_open:
        raise transaction.TransactionManagementError("The handler returned with a transaction left open.")


def _open_transactions() -> dict[str, int]:
    """Alias -> how deep this thread's connection is in `atomic` blocks; 0 where Django does not know of any."""
    return {
        alias: len(found.atomic_blocks)
        for alias, found in ((alias, connections[alias]) for alias in connections)
        if found.connection is not None and (found.in_atomic_block or not found.autocommit or _begun_in_sql(found))
    }


def _begun_in_sql(connection: Any) -> bool:
    """What the driver knows of a transaction that was begun past Django; MariaDB's does not tell."""
    with suppress(connection.Database.Error):  # it is closed
        if connection.vendor == "postgresql":
            return connection.connection.info.transaction_status in UNFINISHED
        if connection.vendor == "sqlite":
            return bool(connection.connection.in_transaction)
    return False


def _close_all_but(kept: Collection[str]) -> None:
    for found in connections.all(initialized_only=True):
        if found.alias not in kept:
            _discard(found)


def _leave(connection: Any, depth: int) -> None:
    """Roll back to the savepoint that was there before."""
    while len(connection.atomic_blocks) > depth:
        connection.atomic_blocks[-1].__exit__(transaction.TransactionManagementError, None, None)


def _discard(connection: Any) -> None:
    """Close it, and let its next use connect anew: Django keeps a connection that is closed inside `atomic` closed."""
    with suppress(DatabaseError):
        connection.close()
    connection.connection, connection.in_atomic_block = None, False
