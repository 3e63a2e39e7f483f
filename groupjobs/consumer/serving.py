"""Serve a queue: step, begin, run, settle, until nothing is ready or the time is up."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from django.db import DatabaseError

from groupjobs import bell, conf, ledger, moves, registry, reports, tracing
from groupjobs.consumer import announcing
from groupjobs.consumer.admission import decide
from groupjobs.consumer.attempt import attempt, burst, from_keyboard
from groupjobs.consumer.batch import BACK, RAN, RUN, WAIT, Book, Item
from groupjobs.consumer.context import RunContext
from groupjobs.consumer.executions import Executions, Unwatched
from groupjobs.consumer.farewell import farewell
from groupjobs.consumer.guard import Guard
from groupjobs.consumer.pace import Pace
from groupjobs.consumer.patience import Patience, Stopped
from groupjobs.consumer.turning import Other, turn_away
from groupjobs.errors import LeaseLost
from groupjobs.ledger import Beginning, Settlement
from groupjobs.lifecycle import Admission
from groupjobs.store import Consumer, Outcome, Reservation, store_for

logger = logging.getLogger("groupjobs")

LOCKED: Final = 200  # ms until a run whose row an `enqueue` holds is looked at again
UNCONFIRMED: Final = 0.25  # seconds after which a lease is confirmed before the next handler starts


def serve(queue: str, worker: str, stop: Callable[[], bool], executions: Executions | None = None) -> None:
    """Serve groups of one queue until none is ready, `consumer_seconds` have passed or `stop()` says so.

    `worker` is the identity "host:pid:incarnation". Nothing is lost when this ends, however it ends.
    """
    consumer = Consumer(uuid.uuid4().hex[:16], worker, os.getpid())
    watched = executions or Unwatched()
    watched.register(consumer.nonce, consumer.pid)
    try:
        Service(queue, consumer, stop, watched).run()
    finally:
        watched.sign_off(consumer.nonce)


class Service:
    """One execution of the consumer task."""

    def __init__(self, queue: str, consumer: Consumer, stop: Callable[[], bool], executions: Executions) -> None:
        settings = conf.current()
        self.queue = queue
        self.consumer = consumer
        self.stop = stop
        self.executions = executions
        self.report: Callable[[str, Sequence[int]], object] = reports.soon
        self.settings = settings
        self.book = Book(store_for(queue), consumer)
        self.pace = Pace(settings.commit_interval)
        self.patience = Patience(stop)
        self.settling = threading.RLock()
        self.committed = time.monotonic()
        self.until = time.monotonic() + settings.consumer_seconds
        self.ended = False
        self.watched = False  # whether somebody wants to hear of the starts of this batch

    def run(self) -> None:
        """Serve until the end; then tell Redis what is known and sign off."""
        guard = Guard(self)
        guard.start()
        served = False
        try:
            while not self.stop() and time.monotonic() < self.until and self.turn():
                served = True
        except Stopped:
            logger.warning("Consumer of %s stops while a server is down; its leases are given back.", self.queue)
        finally:
            guard.finish()
            self.leave(served)

    def leave(self, served: bool) -> None:
        """Give back what has not started, settle what is known, sign off, and ring for what is left."""
        try:
            self.settle()
            self.give_back(self.book.in_state(WAIT))
        except (Stopped, *ledger.CONNECTION_ERRORS):
            logger.warning("Consumer of %s leaves with the database down; recovery settles the rest.", self.queue)
        if not self.ended:
            farewell(self.book)
            if served:
                bell.ring(self.queue)

    def turn(self) -> bool:
        """One batch; False when there was nothing to serve."""
        reply = self.patience.redis(lambda: self.book.step(self.pace.want))
        if reply.bells:
            bell.ring(self.queue, reply.bells)
        self.ended = reply.ended
        if not reply.reservations:
            return False
        items = self.begin(reply.reservations)
        ran = self.run_items(items)
        self.settle()
        self.pace.ran(ran, sum(item.seconds for item in items))  # not the commit: the slower, the more it should take
        return True

    def begin(self, reservations: Sequence[Reservation]) -> list[Item]:
        """Load, decide, and write RUNNING for the whole batch before any handler starts."""
        ids = [r.run for r in reservations]
        rows = self.patience.database(lambda: ledger.load(self.queue, ids))
        decided = decide(reservations, rows, registry.resolve, self.consumer.nonce, self.settings.unknown_job_grace)
        beginnings = [self._beginning(item, admission) for item, admission in decided.begin]
        begun = self.patience.database(lambda: ledger.begin(beginnings))
        self.committed = time.monotonic()
        items = [item for item, _ in decided.begin]
        with self.book.lock:
            self.book.items = list(items)
        self._not_begun([item for item in items if item.run not in begun])
        for item, admission in decided.begin:
            if admission.lost and item.run in begun:
                moves.tell_lost(item.row, admission.counted)
        self._turn_away(decided.others)
        self.watched = announcing.begun(self.book.in_state(WAIT))
        return items

    def _beginning(self, item: Item, admission: Admission) -> Beginning:
        item.worker, nonce = self.consumer.worker, self.consumer.nonce
        fence, alone = item.reservation.fence, item.reservation.alone
        return Beginning(item.row, fence, alone, item.worker, nonce, admission.lost, admission.counted)

    def _turn_away(self, others: Sequence[Other]) -> None:
        self.book.extra += self.patience.database(lambda: turn_away(self.queue, others))
        abandoned = [reservation.run for reservation, _, admission in others if admission.kind == "abandon"]
        if abandoned:
            self.report(self.queue, abandoned)

    def _not_begun(self, items: Sequence[Item]) -> None:
        """Somebody moved these rows in between: they go back, and their groups behind them."""
        groups = {item.reservation.group for item in items}
        for item in items:
            pause = LOCKED if item.row.keyed else 0
            self.book.told(item, Outcome(item.run, item.reservation.fence, "back", delay_ms=pause))
        self.give_back([item for item in self.book.in_state(WAIT) if item.reservation.group in groups])

    def run_items(self, items: Sequence[Item]) -> int:
        """Run handlers one after the other; answers how many ran."""
        ran = 0
        for item in items:
            if self.stop():
                break
            if item.state != WAIT or not self._may_start(item):
                continue
            ran += 1
            self._run(item)
        return ran

    def _may_start(self, item: Item) -> bool:
        now = time.monotonic()
        if now - self.committed > self.settings.commit_interval and self.book.in_state(RAN):
            self.settle()
        if now - self.book.confirmed > UNCONFIRMED:
            self.patience.redis(self.book.keep)
        with self.book.lock:
            if item.state != WAIT:
                return False
            item.state = RUN
            item.started = time.monotonic()
        return True

    def _run(self, item: Item) -> None:
        if self.watched:
            announcing.starting(self.queue, self.consumer.worker, item)
        settlement = self._within_limit(item)
        item.seconds = time.monotonic() - item.started
        if item.span is not None:
            tracing.end(item.span, settlement.transition, settlement.error)
        with self.book.lock:
            item.settlement = settlement
            item.state = RAN
        if settlement.transition != "succeed":
            group = item.reservation.group
            self.give_back([other for other in self.book.in_state(WAIT) if other.reservation.group == group])

    def _within_limit(self, item: Item) -> Settlement:
        if item.row.time_limit is None:
            return self._attempt(item)
        self.executions.deadline(self.consumer.nonce, item.run, item.reservation.fence, item.row.time_limit)
        try:
            return self._attempt(item)
        finally:
            self.executions.clear(self.consumer.nonce)

    def _attempt(self, item: Item) -> Settlement:
        try:
            return attempt(item, RunContext)
        except LeaseLost:
            return _returned(item)
        except BaseException as error:
            if self.stop() and isinstance(error, SystemExit | KeyboardInterrupt):
                return _returned(item)
            if isinstance(error, KeyboardInterrupt) and from_keyboard():
                raise
            return burst(item, error)

    def settle(self, *, patient: bool = True) -> None:
        """Commit every outcome and give-back that is known and not yet written: one transaction."""
        with self.settling:
            ran, back = self.book.in_state(RAN), self.book.in_state(BACK)
            self.write_progress(ran)
            written = [(i.row, i.settlement) for i in ran if i.settlement and not i.settlement.committed]
            told = self._write([*written, *((item.row, _returned(item)) for item in back)], patient)
            for item in (*ran, *back):
                self.book.settled(item, told.get(item.run))
            self.committed = time.monotonic()
        announcing.settled(self.queue, ran)

    def write_progress(self, items: Sequence[Item]) -> None:
        """Write the last word of handlers that said how far they have come; news may be lost in an outage."""
        said = {item.run: item.progress for item in items if item.progress}
        for item in items:
            item.progress = None
        if said:
            with suppress(DatabaseError, *ledger.CONNECTION_ERRORS):
                ledger.write_progress(said)

    def give_back(self, items: Sequence[Item], *, patient: bool = True) -> None:
        """These were begun but not started: their rows say READY again, in the commit of what has ended."""
        with self.book.lock:
            for item in items:
                item.state = BACK if item.state == WAIT else item.state
        self.settle(patient=patient)

    def _write(self, items: Sequence[moves.Item], patient: bool) -> dict[int, moves.Settled]:
        if not items:
            return {}
        if not patient:
            return moves.settle(self.queue, items)
        return self.patience.database(lambda: moves.settle(self.queue, items))


def _returned(item: Item) -> Settlement:
    """This attempt has no outcome of its own: the run goes back, nothing is counted."""
    return Settlement(item.run, item.reservation.fence, "give_back", tried=False)
