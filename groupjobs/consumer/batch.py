"""The runs in a consumer's hands: what state each is in, and what Redis is to be told of it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from groupjobs.consumer.gate import Gate
from groupjobs.ledger import Settlement
from groupjobs.lifecycle import Seen
from groupjobs.moves import Settled
from groupjobs.registry import Handler
from groupjobs.store import Consumer, Lease, Outcome, Reservation, Store
from groupjobs.store.replies import StepReply

WAIT = "wait"  # begun, its handler has not started
RUN = "run"  # its handler runs
RAN = "ran"  # its handler ended, its outcome is not committed
BACK = "back"  # it will not start here; its row is about to say READY again
TOLD = "told"  # its row is right; the next step tells Redis
HELD = (WAIT, RUN, RAN, BACK)


@dataclass(slots=True)
class Item:
    """One reservation, its row and its handler."""

    reservation: Reservation
    row: Seen
    handler: Handler | None = None
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    attempt: int = 1
    worker: str = ""  # whose attempt this is; the row, as it was loaded, names the one before
    state: str = WAIT
    settlement: Settlement | None = None
    outcome: Outcome | None = None
    cancelled: bool = False
    lost: bool = False
    gate: Gate = field(default_factory=Gate)
    started: float = 0.0
    seconds: float = 0.0
    progress: dict[str, Any] | None = None
    span: Any = None  # of OpenTelemetry, when somebody traces
    result: Any = None  # a django.tasks result, when somebody hears its signals

    @property
    def run(self) -> int:
        """The run's id."""
        return self.reservation.run

    def lease(self) -> Lease:
        """The lease as a guard re-asserts it."""
        r = self.reservation
        return Lease(r.run, r.group, self.row.order, r.life, r.fence, int(r.alone))


class Book:
    """A consumer's leases and its talk with Redis, shared by its main thread and its guard.

    The lock covers states of items and script calls: no `keep` can slip between a step and its reply.
    """

    def __init__(self, store: Store, consumer: Consumer) -> None:
        self.store = store
        self.consumer = consumer
        self.lock = threading.RLock()
        self.items: list[Item] = []
        self.extra: list[Outcome] = []  # of reservations that did not begin
        self.answered = 0
        self.confirmed = time.monotonic()
        self._number = 0

    def step(self, want: int) -> StepReply:
        """Tell Redis all outcomes that are known, name what is still held, and reserve up to `want`.

        A call that failed is followed by one with the next number: a late copy of the first is refused.
        Raises what the client raises; nothing is forgotten then.
        """
        with self.lock:
            held = self.in_state(*HELD)
            outcomes = [item.outcome for item in self.items if item.outcome] + self.extra
            outcomes += [Outcome(item.run, item.reservation.fence, "hold") for item in held]
            self._number += 1
            reply = self.store.step(self.consumer, self._number, want, outcomes)
            self.answered = self._number
            self.confirmed = time.monotonic()
            self.items, self.extra = held, []
            return reply

    def keep(self) -> None:
        """Re-assert the leases; learn which are lost and which runs somebody wants cancelled.

        A lost one that has not started never starts here. Its row is given back: it says RUNNING under
        our fence, which would be taken for an attempt that was lost.
        """
        with self.lock:
            held = self.in_state(*HELD)
            if not held:
                return
            reply = self.store.keep(self.consumer, self.answered, [item.lease() for item in held])
            self.confirmed = time.monotonic()
            lost, cancels = set(reply.lost), set(reply.cancels)
            for item in held:
                item.cancelled |= item.run in cancels
                if (item.run, item.reservation.fence) in lost or reply.state == "refused":
                    item.lost = True
                    item.state = BACK if item.state == WAIT else item.state

    def in_state(self, *states: str) -> list[Item]:
        """Items in these states, in the order of the line."""
        return [item for item in self.items if item.state in states]

    def settled(self, item: Item, settled: Settled | None) -> None:
        """Its row is right, and says what was taken; None: an atomic run, which has settled it itself."""
        if settled is not None:
            item.settlement = settled.settlement
        self.told(item, settled.outcome if settled else Outcome(item.run, item.reservation.fence, "done"))

    def told(self, item: Item, outcome: Outcome) -> None:
        """The row is right; remember what Redis is to hear."""
        item.outcome = outcome
        item.state = TOLD
