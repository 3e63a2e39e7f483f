"""The reference store: the verbs of Store in plain Python, without Redis."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

from groupjobs.store.reference.data import Data, Rule
from groupjobs.store.reference.recovering import Recovering
from groupjobs.store.replies import BeatReply, Consumer, KeepReply, Lease, ReapReply, TickReply

PATIENCE = 200


def monotonic() -> int:
    """This process's own time in ms."""
    return int(time.monotonic() * 1000)


def milliseconds(rate: tuple[int, float] | None) -> tuple[int, float] | None:
    """A rate with its period in ms."""
    return rate and (rate[0], math.ceil(rate[1] * 1000))


class Reference(Recovering):
    """One queue in this process's memory; `now` stands for Redis's TIME (ms)."""

    def __init__(
        self,
        *,
        queue: str = "default",
        ttl: float = 15,
        consumers: int | None = None,
        group_concurrency: int = 1,
        rate: tuple[int, float] | None = None,
        now: Callable[[], int] = monotonic,
    ) -> None:
        super().__init__(now, math.ceil(ttl * 1000), consumers, Rule(group_concurrency, milliseconds(rate)))
        self.queue = queue

    def forget(self) -> None:
        """FLUSHALL."""
        self.data = Data()

    def keep(self, consumer: Consumer, number: int, leases: Sequence[Lease]) -> KeepReply:
        """Re-assert what the consumer holds."""
        state, nonce = self.notice(), consumer.nonce
        if self.ended(nonce, consumer.worker):
            return KeepReply("refused")
        known = self.data.consumers.get(nonce)
        if known is None:
            self.data.workers.setdefault(consumer.worker, self.data.clock)
        self.register(nonce, consumer.worker, consumer.pid, max(number, known.number if known else 0))
        entries = [(lease, self.insist(lease, nonce, consumer.worker)) for lease in leases]
        self.refresh()
        state = "paused" if state == "open" and self.paused() else state
        lost = tuple((lease.run, lease.fence) for lease, e in entries if e is None)
        return KeepReply(state, lost, tuple(sorted(e.run for _, e in entries if e and e.cancel)))

    def beat(self, worker: str, slots: int, consumers: Mapping[str, int], leaving: bool = False) -> BeatReply:
        """The worker is alive and watches these executions."""
        state, d = self.notice(), self.data
        if self.ended(worker):
            return BeatReply(False, state, self.epoch, {})
        d.workers[worker], d.slots[worker] = d.clock, (slots, leaving, self.now)
        for nonce, pid in consumers.items():
            known = d.consumers.get(nonce)
            if not self.ended(nonce) and (known is None or known.epoch != self.epoch):
                self.register(nonce, worker, pid, known.number if known else 0)
        mine = {n: c.pid for n, c in d.consumers.items() if c.worker == worker and c.epoch == self.epoch}
        kills = [(e.consumer, e.run) for e in d.entries.values() if e.cancel == 2 and e.worker == worker]
        return BeatReply(True, state, self.epoch, mine, tuple(sorted(kills)))

    def tick(self, worker: str, free: int) -> TickReply:
        """Promote, heal, strike off the forgotten, ring."""
        state, d = self.notice(), self.data
        for expiring in (name for name, until in list(d.ended.items()) if until <= d.clock):
            del d.ended[expiring]
        self.purge_tokens()
        self.bury_silent()
        for nonce, known in list(d.consumers.items()):
            if known.seen < d.clock - self.ttl and not d.leases[nonce]:
                self.bury(nonce)
        _, more = self.heal()
        self.promote()
        bells = d.bells
        waited = not bells.outstanding or d.clock - bells.at >= PATIENCE
        unserved = free > 0 and self.demand() > 0 and not self.ended(worker) and waited
        return TickReply(
            state, self.epoch, self.ring(), len(d.ready), self.wait_ms(more), unserved, self.rebuilding_ms()
        )

    def wait_ms(self, more: bool) -> int | None:
        """How long until something is due; None for never."""
        due = [*self.data.later.values(), *(e.at or 0 for e in self.data.entries.values() if e.scheduled)]
        if more:
            return 0
        return max(0, min(due) - self.now) if due else None

    def reap(
        self,
        worker: str = "",
        consumer: str = "",
        pid: int = 0,
        group: str = "",
        overdue: Sequence[tuple[int, int]] = (),
        interrupted: bool = False,
    ) -> ReapReply:
        """A consumer, a worker or its process `pid` is dead now; or bury the ghosts that hold `group`."""
        state = self.notice()
        known = self.data.consumers.get(consumer)
        self.mark_overdue(consumer, overdue)
        if consumer:
            self.bury(consumer, interrupted or self.leaving(known.worker if known else worker))
        elif worker and pid:
            for nonce in [n for n, c in self.data.consumers.items() if (c.worker, c.pid) == (worker, pid)]:
                self.bury(nonce, self.leaving(worker))
        elif worker:
            self.bury_worker(worker)
        for run in self.data.held[group] if group and state != "rebuild" else ():
            e = self.data.entries[run]
            if self.ghostly(e.consumer):
                self.bury(e.consumer, self.leaving(e.worker))
        return ReapReply(*self.heal())

    def mark_overdue(self, consumer: str, leases: Sequence[tuple[int, int]]) -> None:
        """These leases of a consumer lasted longer than their time limit."""
        for run, fence in leases:
            e = self.data.entries.get(run)
            if e is not None and (e.consumer, e.fence) == (consumer, fence):
                e.overdue = fence

    def goodbye(self, consumer: Consumer) -> ReapReply:
        """Sign off."""
        return self.reap(worker=consumer.worker, consumer=consumer.nonce)

    def withdraw(self, items: Sequence[tuple[int, str, int]], force: bool = False) -> tuple[str, ...]:
        """Cancel (run, line name, life)."""
        self.notice()
        words = tuple(self.withdraw_one(run, life, force) for run, _, life in items)
        self.refresh()
        return words

    def withdraw_one(self, run: int, life: int, force: bool) -> str:
        """Removed, held or absent."""
        e = self.data.entries.get(run)
        if e is None or e.life > life:
            return "absent"
        if e.consumer:
            e.cancel = max(e.cancel, 1 + force)
            return "held"
        self.take(e)
        del self.data.entries[run]
        return "removed"

    def hold(
        self,
        group: str,
        version: int,
        held: bool,
        group_concurrency: int | None = None,
        rate: tuple[int, float] | None = None,
    ) -> bool:
        """Set a group's hold and overrides; '' pauses the queue."""
        self.notice()
        if version < self.rule(group).version:
            return False
        limit = group_concurrency or self.default.limit
        self.data.rules[group] = Rule(limit, milliseconds(rate) or self.default.rate, version, held)
        if group:
            self.touch(group)
        self.refresh()
        return True

    def ping(self) -> str:
        """The queue's state."""
        return self.notice()

    def turn(self, name: str, seconds: float) -> bool:
        """Whether this caller does the periodic duty `name` now."""
        self.notice()
        if self.data.turns.get(name, 0) > self.now:
            return False
        self.data.turns[name] = self.now + math.ceil(seconds * 1000)
        return True

    def swept(self, go_on: int = 0) -> None:
        """A full sweep has ended, and the next one goes on after run `go_on`."""
        self.notice()
        self.data.swept = (self.now, go_on)

    def swept_to(self) -> int:
        """After which run the next full sweep goes on."""
        return self.data.swept[1] if self.data.swept else 0

    def count(self, numbers: Mapping[str, int]) -> None:
        """Add to counters of the queue."""
        self.data.stats.update(numbers)
