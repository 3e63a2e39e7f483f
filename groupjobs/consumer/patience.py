"""Patience with a server that is down: try again with growing pauses, log once, keep what is held."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from django.db import DatabaseError

from groupjobs import ledger, moves
from groupjobs.outage import Outage

T = TypeVar("T")

FIRST: Final = 0.1  # seconds
LONGEST: Final = 2.0
database_outage = Outage("The database")
redis_outage = Outage("Redis")


class Stopped(Exception):
    """The worker shuts down while a server is away; what is held is left to recovery."""


class Patience:
    """Carries out calls again and again until the server answers or the worker stops."""

    def __init__(self, stop: Callable[[], bool], grace: float = 5.0) -> None:
        self.stop = stop
        self.grace = grace

    def database(self, call: Callable[[], T]) -> T:
        """Try until the database answers; each further try on a new connection."""
        return self._insist(
            lambda: _on_a_clean_session(call), ledger.CONNECTION_ERRORS, database_outage, ledger.forget_connection
        )

    def redis(self, call: Callable[[], T]) -> T:
        """Try until Redis answers."""
        return self._insist(call, moves.REDIS_ERRORS, redis_outage, lambda: None)

    def _insist(
        self, call: Callable[[], T], errors: tuple[type[Exception], ...], outage: Outage, before: Callable[[], None]
    ) -> T:
        pause, give_up = FIRST, None
        while True:
            try:
                answer = call()
            except errors as error:
                outage.failed(error, "consumers keep what they hold and try again")
            else:
                outage.ended()
                return answer
            if self.stop():
                give_up = give_up or time.monotonic() + self.grace
                if time.monotonic() > give_up:
                    raise Stopped
            before()
            time.sleep(pause)
            pause = min(2 * pause, LONGEST)


def _on_a_clean_session(call: Callable[[], T]) -> T:
    """A handler may have left its settings on the connection, such as another search path: once more on a new one."""
    try:
        return call()
    except ledger.CONNECTION_ERRORS:
        raise
    except DatabaseError:
        if ledger.connection().in_atomic_block:
            raise
        ledger.forget_connection()
        return call()
