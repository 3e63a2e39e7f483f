"""The reference store's third part: enqueue and step."""

from __future__ import annotations

import math
from collections.abc import Sequence

from groupjobs.store.reference.data import Known
from groupjobs.store.reference.presence import Presence
from groupjobs.store.replies import (
    BadArgument,
    Consumer,
    EnqueueReply,
    EpochChanged,
    Outcome,
    Publication,
    Reservation,
    StepReply,
)

VERBS = ("done", "retry", "back", "suspect", "owner", "hold")


class Serving(Presence):
    """Presence that publishes and serves."""

    def enqueue(self, publications: Sequence[Publication], epoch: str | None = None) -> EnqueueReply:
        """Publish runs."""
        state = self.notice()
        if epoch is not None and epoch != self.epoch:
            raise EpochChanged(epoch)
        self.raise_counter(p.fence for p in publications)
        for p in publications:
            at = p.due_ms if p.due_ms is not None else self.now + p.delay_ms if p.delay_ms is not None else None
            e = self.data.entries.get(p.run)
            if e is None:
                fresh = Known(p.run, p.group, p.order, p.life, p.fence, p.alone, p.priority)
                self.put(fresh, at, p.yields)
                if not fresh.scheduled:
                    self.touch(p.group, p.priority)
            elif e.consumer:
                e.again = max(e.again, p.life)
            else:
                self.lift(e, p, at)
        self.refresh()
        return EnqueueReply(self.ring(), state)

    def lift(self, e: Known, p: Publication, at: int | None) -> None:
        """A waiting run keeps its place; only a newer life brings a new time."""
        newer = p.life > e.life
        e.life, e.fence, e.alone = max(e.life, p.life), max(e.fence, p.fence), max(e.alone, p.alone)
        if newer:
            self.take(e)
            e.healed, e.interrupted, e.overdue = 0, False, 0
            self.put(e, at, p.yields)

    def step(self, consumer: Consumer, number: int, want: int, outcomes: Sequence[Outcome] = ()) -> StepReply:
        """Settle, heal, promote, reserve."""
        for outcome in outcomes:
            if outcome.verb not in VERBS:
                raise BadArgument("verb")
        state, nonce = self.notice(), consumer.nonce
        self.bury_silent()
        known = self.data.consumers.get(nonce)
        if self.ended(nonce, consumer.worker) or (known and number < known.number):
            return StepReply("refused")
        if known and number == known.number:
            return StepReply("repeat", self.held_by(nonce))
        full = not known and not outcomes and self.most is not None and len(self.data.consumers) >= self.most
        if not known:
            self.data.workers.setdefault(consumer.worker, self.data.clock)
        if not known or not known.number:
            self.answered()
        self.register(nonce, consumer.worker, consumer.pid, number)
        stale = self.settle(nonce, outcomes)
        self.heal()
        self.promote()
        state = "paused" if state == "open" and self.paused() else state
        reserved = self.reserve(consumer, want) if state == "open" and want and not full else ()
        struck = want > 0 and state != "rebuild" and not self.data.leases[nonce]
        if struck:
            self.bury(nonce)
        return StepReply(state, reserved, stale, self.ring(), struck)

    def held_by(self, nonce: str) -> tuple[Reservation, ...]:
        """The leases of a consumer, in the order of their fences."""
        held = sorted((self.data.entries[run] for run in self.data.leases[nonce]), key=lambda e: e.fence)
        return tuple(map(reserved, held))

    def settle(self, nonce: str, outcomes: Sequence[Outcome]) -> tuple[tuple[int, int], ...]:
        """Carry outcomes out and give back what none names; answers the stale ones."""
        stale, named = [], set()
        for outcome in sorted(outcomes, key=lambda o: o.verb != "done"):
            e = self.data.entries.get(outcome.run)
            if e is None or outcome.run in named or (e.consumer, e.fence) != (nonce, outcome.fence):
                stale.append((outcome.run, outcome.fence))
                continue
            named.add(outcome.run)
            self.carry_out(e, outcome)
        for run in self.data.leases[nonce] - named:
            self.release(self.data.entries[run], "back")
        self.refresh()
        return tuple(stale)

    def carry_out(self, e: Known, outcome: Outcome) -> None:
        """One outcome of a lease that fits."""
        at = self.now + outcome.delay_ms
        if outcome.verb == "owner":
            self.unlease(e)
            e.fence = outcome.fence_to
            self.lease(e, outcome.owner, outcome.owner_worker)
            self.raise_counter([e.fence])
            if outcome.owner not in self.data.consumers:
                self.data.dead.setdefault(outcome.owner, False)
        elif outcome.verb in ("back", "suspect"):
            e.alone = max(e.alone, int(outcome.verb == "suspect"))
            e.fence = max(e.fence, outcome.fence_to)
            self.raise_counter([outcome.fence_to])
            self.release(e, "back", at)
        elif outcome.verb == "retry":
            self.release(e, "retry", at, outcome.yields)
        elif outcome.verb == "done":
            self.release(e, "done")

    def reserve(self, consumer: Consumer, want: int) -> tuple[Reservation, ...]:
        """Up to `want` heads of ready groups, oldest rank first; a hinted run alone."""
        groups = sorted(self.data.ready, key=lambda g: (self.data.ready[g], g.encode()))[:want]
        batch: list[Known] = []
        for group in groups:
            if len(batch) >= want or (batch and batch[-1].alone):
                break
            drawn = self.draw(group, min(want - len(batch), math.ceil(want / len(groups))), bool(batch))
            batch += drawn
            if not drawn:
                self.touch(group)
        for group in {e.group for e in batch}:
            self.spend(group, sum(e.group == group for e in batch))
        for e in batch:
            e.alone = max(e.alone, int(len(batch) == 1))
            self.data.counter += 1
            e.fence = self.data.counter
            self.data.lines[e.group].remove(e.place)
            self.lease(e, consumer.nonce, consumer.worker)
        if batch:
            self.data.served[consumer.worker] = self.data.clock
            self.data.stats["reserved"] += len(batch)
        self.refresh()
        return tuple(map(reserved, batch))

    def draw(self, group: str, share: int, later_in_batch: bool) -> list[Known]:
        """The heads of one group that may go into the batch."""
        room = self.tokens(group, share if self.rule(group).limit == 1 else min(share, 1))
        drawn: list[Known] = []
        for _, run in self.data.lines[group][:room]:
            e = self.data.entries[run]
            if (e.at or 0) > self.now or (e.alone and (drawn or later_in_batch)):
                break
            drawn.append(e)
            if e.alone:
                break
        return drawn

    def spend(self, group: str, taken: int) -> None:
        """Take tokens; the group lines up anew behind the others."""
        rate = self.rule(group).rate
        if rate:
            self.purge_tokens()
            self.data.tokens[group] = self.full_at(group, rate) + taken * rate[1] / rate[0]
        self.data.ready.pop(group)


def reserved(e: Known) -> Reservation:
    """A lease as its consumer hears of it."""
    return Reservation(e.run, e.fence, e.life, e.alone > 0, e.group, e.healed, e.interrupted, 0 < e.overdue == e.healed)
