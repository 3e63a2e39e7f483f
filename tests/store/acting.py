"""Short words for what producers and consumers do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupjobs.store import Consumer, Lease, Outcome, Publication, Reservation
from groupjobs.store.replies import StepReply

ONE = Consumer("one", "w:1:a", 1)
TWO = Consumer("two", "w:2:b", 2)


def publish(store: Any, group: str, *runs: int, **options: Any) -> None:
    store.enqueue([Publication(run, group, **options) for run in runs])


def runs(reply: StepReply) -> list[int]:
    return [reservation.run for reservation in reply.reservations]


def all_(verb: str, reservations: Sequence[Reservation], **options: Any) -> list[Outcome]:
    return [Outcome(r.run, r.fence, verb, **options) for r in reservations]


def lease(r: Reservation) -> Lease:
    return Lease(r.run, r.group, 0, r.life, r.fence, int(r.alone))


class Acting:
    """A consumer that keeps its numbers and what it holds."""

    def __init__(self, store: Any, who: Consumer = ONE) -> None:
        self.store, self.who, self.number = store, who, 0
        self.held: tuple[Reservation, ...] = ()

    def step(self, want: int, verb: str | None = "done", **options: Any) -> StepReply:
        """Tell one verb for all that is held (None: name nothing), and reserve."""
        self.number += 1
        outcomes = all_(verb, self.held, **options) if verb else []
        reply: StepReply = self.store.step(self.who, self.number, want, outcomes)
        self.held = reply.reservations
        return reply

    def again(self, want: int, outcomes: Sequence[Outcome] = ()) -> StepReply:
        """The same step again, as redis-py sends it when a reply is lost."""
        reply: StepReply = self.store.step(self.who, self.number, want, outcomes)
        return reply

    def keep(self) -> Any:
        return self.store.keep(self.who, self.number, [lease(r) for r in self.held])


def drain(store: Any, who: Consumer = ONE, want: int = 64) -> list[int]:
    """Serve until nothing is ready; the runs in the order of their reservations."""
    acting, served = Acting(store, who), []
    while not (reply := acting.step(want)).ended:
        served += runs(reply)
    return served
