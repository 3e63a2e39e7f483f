"""What a handler leaves behind on this thread's database connections: no transaction may outlive it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import DatabaseError, connections, transaction


@contextmanager
def no_transaction_left() -> Iterator[None]:
    """What runs inside must not end in the middle of a transaction.

    One that is left open is rolled back with its connection, and TransactionManagementError raised,
    unless the handler raised something itself.
    """
    try:
        yield
    finally:
        left_open = [found for found in connections.all(initialized_only=True) if _in_transaction(found)]
        for connection in left_open:
            _discard(connection)
    if left_open:
        raise transaction.TransactionManagementError("The handler returned with a transaction left open.")


def _in_transaction(connection: Any) -> bool:
    return connection.connection is not None and (connection.in_atomic_block or not connection.get_autocommit())


def _discard(connection: Any) -> None:
    """Close it, and let its next use connect anew: Django keeps a connection that is closed inside `atomic` closed."""
    with suppress(DatabaseError):
        connection.close()
    connection.connection, connection.in_atomic_block = None, False
