"""The pulse of a worker in one queue: its beats, and the end of what has died."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Final

from groupjobs.store import Store
from groupjobs.store.replies import BeatReply
from groupjobs.watchdog.home import Execution, Home, incarnation

logger = logging.getLogger("groupjobs.watchdog")

MOST_CALLS: Final = 20  # of healing at once; the workers' ticks do the rest


def interval(ttl: float) -> float:
    """Seconds between two beats."""
    return min(3.0, ttl / 5)


class Pulse:
    """One queue of the worker. Raises what the Redis client raises."""

    def __init__(self, queue: str, store: Store, home: Home, main: int, slots: int, ttl: float) -> None:
        self.queue = queue
        self.due = 0.0
        self.announced = False  # that the worker leaves
        self._store = store
        self._home = home
        self._main = main
        self._slots = slots
        self._ttl = ttl
        self.worker = home.worker_of(queue) or incarnation(main)

    def beat(self, listed: Mapping[str, int], leaving: bool) -> BeatReply:
        """The worker is alive and `listed` (nonce -> pid) serve this queue.

        Once judged dead an incarnation stays dead: then the worker goes on under a new one, and what
        began under the old one is refused.
        """
        due = time.monotonic() + interval(self._ttl)
        reply = self._store.beat(self.worker, self._slots, listed, leaving)
        if reply.alive:
            self.due = due
            self.announced = self.announced or leaving
        else:
            self._renew()
        return reply

    def _renew(self) -> None:
        old, self.worker = self.worker, incarnation(self._main)
        self._home.serve(self.queue, self.worker)
        self.due = 0.0
        logger.warning("Worker %s was judged dead in queue %s; it goes on as %s.", old, self.queue, self.worker)

    def reap(self, nonce: str, known: Execution) -> None:
        """This execution is dead: its runs go back to their places now. One that we killed costs them no loss."""
        overdue = [(known["run"], known["fence"])] if known.get("over") else []
        reply = self._store.reap(
            worker=known["worker"], consumer=nonce, overdue=overdue, interrupted=known.get("struck", False)
        )
        self._heal_on(reply.more)

    def end(self, leaving: bool, dead: Mapping[str, Execution]) -> None:
        """The worker is dead: so are all its executions, `dead` for reasons of their own.

        Its shutdown is announced first if it has begun.
        """
        if leaving and not self.announced:
            self.beat({}, True)
        for nonce, known in dead.items():
            if known["queue"] == self.queue:
                self.reap(nonce, known)
        self._heal_on(self._store.reap(worker=self.worker).more)

    def _heal_on(self, more: bool) -> None:
        for _ in range(MOST_CALLS):
            if not more:
                return
            more = self._store.reap().more
