"""Which connection the ledger writes through, and what counts as losing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import InterfaceError, InternalError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from groupjobs import conf

# A lost server, a deadlock, a serialization failure, a lock that timed out, a server that became read-only (which
# PostgreSQL calls an internal error): worth another try of the whole transaction. Anything else is one bad value.
CONNECTION_ERRORS: Final = (OperationalError, InterfaceError, InternalError)


def alias() -> str:
    """The database alias that holds the runs."""
    return conf.current().database


def connection() -> BaseDatabaseWrapper:
    """This thread's connection to the database that holds the runs."""
    return connections[alias()]


def forget_connection() -> None:
    """Close this thread's connection, so that the next query makes a new one."""
    try:
        connection().close()
    except CONNECTION_ERRORS:
        connection().connection = None


@contextmanager
def one_commit() -> Iterator[None]:
    """Everything inside is one transaction of the runs' database."""
    with transaction.atomic(using=alias()):
        yield
