"""The reference store's second part: who is alive, healing, promotion, bells."""

from __future__ import annotations

from groupjobs.store.reference.data import PAUSE, Registered
from groupjobs.store.reference.memory import Memory

HEAL, PROMOTE, SILENT = 40, 128, 4
DAY, LONGEST, BUSY = 86_400_000, 8000, 150


class Presence(Memory):
    """Memory that knows the living from the dead."""

    def register(self, nonce: str, worker: str, pid: int, number: int) -> None:
        """A step, a keep or a watchdog's list confirms a consumer in this epoch."""
        self.data.dead.pop(nonce, None)
        self.data.consumers[nonce] = Registered(number, pid, self.data.clock, self.epoch, worker)

    def ended(self, *names: str) -> bool:
        """Whether one of them has a tombstone."""
        return any(name in self.data.ended for name in names)

    def stale(self, worker: str) -> bool:
        """Whether its last beat is older than the TTL, or unknown."""
        return self.data.workers.get(worker, -self.ttl - 1) < self.data.clock - self.ttl

    def ghostly(self, nonce: str) -> bool:
        """Whether a lease of this consumer is a ghost."""
        known = self.data.consumers.get(nonce)
        return known is None or known.epoch != self.epoch or self.stale(known.worker)

    def leaving(self, worker: str) -> bool:
        """Whether the worker has announced its end."""
        return self.data.slots.get(worker, (0, False, 0))[1]

    def bury(self, nonce: str, leaving: bool = False) -> None:
        """A consumer is dead: a tombstone, and its leases wait for healing."""
        self.data.consumers.pop(nonce, None)
        self.data.ended[nonce] = self.data.clock + 4 * self.ttl
        if self.data.leases[nonce]:
            self.data.dead.setdefault(nonce, leaving)

    def bury_worker(self, worker: str) -> None:
        """An incarnation is dead, and stays so."""
        for nonce in [nonce for nonce, known in self.data.consumers.items() if known.worker == worker]:
            self.bury(nonce, self.leaving(worker))
        for place in (self.data.workers, self.data.slots, self.data.served):
            place.pop(worker, None)
        self.data.ended[worker] = self.data.clock + DAY

    def bury_silent(self) -> None:
        """Workers that no longer beat are dead."""
        for worker in sorted(self.data.workers, key=lambda name: (self.data.workers[name], name))[:SILENT]:
            if self.stale(worker):
                self.bury_worker(worker)

    def heal(self) -> tuple[int, bool]:
        """Leases of the dead back to their places; how many, and whether more wait."""
        healed, d = 0, self.data
        for nonce in sorted(d.dead, key=lambda name: (d.dead[name], name)):
            for run in sorted(d.leases[nonce])[: HEAL - healed]:
                e = d.entries[run]
                e.interrupted = d.dead[nonce]
                d.stats["healed"] += 1
                self.release(e, "lost")
                healed += 1
            if not d.leases[nonce]:
                del d.dead[nonce]
        self.refresh()
        return healed, bool(d.dead)

    def promote(self) -> None:
        """What time has released: due runs to their lines, due groups to `ready`."""
        d = self.data
        due = sorted((e.at or 0, e.run) for e in d.entries.values() if e.scheduled and (e.at or 0) <= self.now)
        for _, run in due[:PROMOTE]:
            d.entries[run].scheduled = False
            self.put(d.entries[run])
        for group in sorted((g for g in d.later if d.later[g] <= self.now), key=lambda g: (d.later[g], g))[:PROMOTE]:
            self.touch(group)
        self.refresh()

    def demand(self) -> int:
        """How many more consumers could work now."""
        if self.state != "open" or self.paused() or not self.data.ready:
            return 0
        slots = sum(slots for slots, leaving, _ in self.data.slots.values() if not leaving)
        ready, most, live = len(self.data.ready), self.most or max(1, slots), len(self.data.consumers)
        busy = sum(known.seen <= self.data.clock - BUSY for known in self.data.consumers.values())
        return min(ready - live + busy, most - live)

    def ring(self) -> int:
        """How many bells to ring now; books them."""
        wanted, bells, clock = self.demand(), self.data.bells, self.data.clock
        if wanted <= 0:
            return 0
        pause = bells.pause
        outstanding = bells.outstanding
        if outstanding and clock - bells.at >= pause:
            outstanding, pause = 0, min(2 * pause, LONGEST)
        if wanted <= outstanding:
            return 0
        bells.at = bells.at if outstanding else clock
        bells.outstanding, bells.pause = wanted, pause
        return wanted - outstanding

    def answered(self) -> None:
        """A new consumer answers a bell."""
        if self.data.bells.outstanding:
            self.data.bells.outstanding -= 1
            self.data.bells.pause = PAUSE
