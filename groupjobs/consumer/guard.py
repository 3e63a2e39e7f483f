"""The guard of a consumer: a thread that looks after its leases while a handler runs."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from groupjobs import bell, ledger
from groupjobs.consumer.batch import BACK, RAN, RUN, TOLD, WAIT, Item
from groupjobs.errors import LeaseLost, SoftTimeLimit
from groupjobs.moves import REDIS_ERRORS

if TYPE_CHECKING:
    from groupjobs.consumer.serving import Service

logger = logging.getLogger("groupjobs")

LOOK: Final = 0.1  # seconds between two looks
LONG: Final = 0.25  # a run that takes longer than this keeps nobody waiting behind it
KEEP: Final = 1.0  # seconds between two confirmations of leases


class Guard(threading.Thread):
    """Gives the rest of a batch back behind a long run, keeps leases, delivers cancels and progress."""

    def __init__(self, service: Service) -> None:
        super().__init__(name="groupjobs-guard", daemon=True)
        self.service = service
        self._end = threading.Event()

    def finish(self) -> None:
        """End the thread and wait for its last look."""
        self._end.set()
        self.join(timeout=30)

    def run(self) -> None:
        """Look after the leases until the consumer ends."""
        try:
            while not self._end.wait(LOOK):
                self._look()
        finally:
            ledger.forget_connection()

    def _look(self) -> None:
        try:
            running = self.service.book.in_state(RUN)
            if running:
                _limit(running[0])
            if running and time.monotonic() - running[0].started > LONG:
                self._free_the_rest()
            if running and time.monotonic() - self.service.book.confirmed > KEEP:
                self._keep(running[0])
            if running and running[0].progress and self._may_write(running[0]):
                self.service.write_progress(running)
        except (*ledger.CONNECTION_ERRORS, *REDIS_ERRORS):
            pass  # the consumer's own thread insists and logs the outage
        except Exception:
            logger.exception("The guard of a consumer failed; it goes on.")

    @staticmethod
    def _may_write(item: Item) -> bool:
        # An atomic handler holds SQLite's only write lock: its progress shows at its commit.
        return not (item.row.atomic and ledger.connection().vendor == "sqlite")

    def _free_the_rest(self) -> None:
        """Commit what has ended and give back what has not started: row, then Redis."""
        service, book = self.service, self.service.book
        if book.in_state(RAN, WAIT, BACK):
            service.give_back(book.in_state(WAIT), patient=False)
        if book.in_state(TOLD) or book.extra:
            reply = book.step(0)
            if reply.bells:
                bell.ring(service.queue, reply.bells)

    def _keep(self, running: Item) -> None:
        book = self.service.book
        book.keep()
        if running.lost:
            running.gate.throw(LeaseLost)


def _limit(item: Item) -> None:
    """The soft time limit; a coroutine keeps it itself."""
    soft = item.row.soft_time_limit
    if soft is not None and time.monotonic() - item.started >= soft and not (item.handler and item.handler.is_async):
        item.gate.throw(SoftTimeLimit)
