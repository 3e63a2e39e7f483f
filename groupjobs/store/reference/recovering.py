"""The reference store's fourth part: what recovery looks at and mends."""

from __future__ import annotations

from collections.abc import Sequence

from groupjobs.store.reference.data import Known
from groupjobs.store.reference.serving import Serving
from groupjobs.store.replies import (
    ConsumerState,
    Entry,
    EpochChanged,
    GroupState,
    Lease,
    Overview,
    Page,
    Snapshot,
    WorkerState,
)


class Recovering(Serving):
    """Serving that answers recovery's questions."""

    def insist(self, lease: Lease, nonce: str, worker: str) -> Known | None:
        """A lease overrides waiting entries of its own or a lower fence, and leases of a lower one."""
        e = self.data.entries.get(lease.run)
        if e and (e.consumer, e.fence) == (nonce, lease.fence):
            return e
        if e and (e.fence > lease.fence or (e.consumer and e.fence == lease.fence)):
            return None
        more = max(e.life, e.again) if e else 0
        if e is None:
            e = Known(lease.run, lease.group, lease.order)
        elif e.consumer:
            self.unlease(e)
        else:
            self.take(e)
        e.life, e.fence, e.alone = lease.life, lease.fence, lease.alone
        e.interrupted, e.overdue = False, 0
        e.again = more if more > lease.life else 0
        self.lease(e, nonce, worker)
        self.raise_counter([lease.fence])
        return e

    def snapshot(self, runs: Sequence[tuple[int, str]]) -> Snapshot:
        """State of runs, given with their line names, and of their groups."""
        state = self.notice()
        found = {run: self.describe(self.data.entries[run]) for run, _ in runs if run in self.data.entries}
        groups = {group: self.group_state(group) for _, group in runs}
        return Snapshot(state, self.epoch, self.rebuilding_ms(), found, groups)

    def describe(self, e: Known) -> Entry:
        """An entry as a snapshot shows it."""
        place = "leased" if e.consumer else "scheduled" if e.scheduled else "line"
        beat = self.data.slots.get(e.worker, (0, False, self.now))[2]
        ghost = bool(e.consumer) and self.ghostly(e.consumer)
        wait = max(0, (e.at or self.now) - self.now)
        interrupted = self.leaving(e.worker) or self.data.dead.get(e.consumer, False) if e.consumer else e.interrupted
        return Entry(
            place, e.life, e.fence, e.alone, e.again, e.consumer, e.worker, ghost, self.now - beat > self.ttl,
            e.healed, wait, interrupted, 0 < e.overdue == (e.fence if e.consumer else e.healed),
        )  # fmt: skip

    def group_state(self, group: str) -> GroupState:
        """A group as a snapshot shows it."""
        d, rule, held = self.data, self.rule(group), sorted(self.data.held[group])
        later = d.later.get(group)
        strays = tuple(run for run in held if self.ghostly(d.entries[run].consumer))
        wait = None if later is None else max(0, later - self.now)
        return GroupState(group in d.ready, wait, len(d.lines[group]), tuple(held), rule.held, rule.version, strays)

    def entries(self, cursor: str = "") -> Page:
        """Everything, in one page."""
        self.notice()
        return Page("", tuple((e.run, e.group) for e in self.data.entries.values()))

    def drop(self, items: Sequence[tuple[int, str, int, int]]) -> int:
        """Forget entries (run, line name, fence, life as observed), never a live consumer's lease."""
        self.notice()
        dropped = sum(self.drop_one(run, fence, life) for run, _, fence, life in items)
        self.refresh()
        return dropped

    def drop_one(self, run: int, fence: int, life: int) -> bool:
        """Whether the entry was as observed and is gone."""
        e = self.data.entries.get(run)
        if e is None or e.fence != fence or max(e.life, e.again) > life:
            return False
        if e.consumer and (self.state == "rebuild" or not self.ghostly(e.consumer)):
            return False
        if e.consumer:
            self.unlease(e)
            self.touch(e.group)
        else:
            self.take(e)
        del self.data.entries[run]
        return True

    def restore(self, epoch: str, leases: Sequence[tuple[Lease, str, str]]) -> tuple[bool, ...]:
        """Leases back to consumers (nonce, worker) that are listed by a living watchdog."""
        self.notice()
        if epoch != self.epoch:
            raise EpochChanged(epoch)
        answers = tuple(self.restore_one(*item) for item in leases)
        self.refresh()
        return answers

    def restore_one(self, lease: Lease, nonce: str, worker: str) -> bool:
        """Whether the lease is with its consumer now."""
        known = self.data.consumers.get(nonce)
        if known is None or known.worker != worker or self.ghostly(nonce):
            return False
        return self.insist(lease, nonce, worker) is not None

    def open(self, epoch: str) -> bool:
        """End the rebuild of this epoch."""
        state = self.notice()
        if epoch != self.epoch or self.data.epoch is None:
            return False
        if state == "rebuild":
            for nonce in [nonce for nonce, known in self.data.consumers.items() if known.epoch != epoch]:
                self.bury(nonce)
            self.data.epoch.open = True
        return True

    def overview(self) -> Overview:
        """The queue as a whole."""
        state, d = self.notice(), self.data
        workers = tuple(self.worker_state(worker) for worker in d.workers)
        consumers = tuple(
            ConsumerState(nonce, known.worker, known.pid, d.clock - known.seen, len(d.leases[nonce]))
            for nonce, known in d.consumers.items()
        )
        scheduled = sum(e.scheduled for e in d.entries.values())
        held = sum(rule.held for group, rule in d.rules.items() if group)
        return Overview(
            state, self.epoch, self.paused(), len(d.ready), len(d.later), scheduled, held, len(d.dead),
            workers, consumers, dict(d.stats), self.rebuilding_ms(), *self.ages(),
        )  # fmt: skip

    def ages(self) -> tuple[int | None, int, int | None]:
        """How long the next group has been ready, and how old the epoch and the last full sweep are."""
        d = self.data
        first = min(d.ready, key=lambda group: (d.ready[group], group), default=None)
        head = None if first is None else d.entries.get(min(d.lines[first])[1])
        ready = None if first is None else max(0, self.now - d.ready[first] - 1000 * (head.priority if head else 0))
        swept = None if d.swept is None else self.now - d.swept[0]
        return ready, d.clock - (d.epoch.since if d.epoch else 0), swept

    def worker_state(self, worker: str) -> WorkerState:
        """A worker as an overview shows it."""
        d = self.data
        slots, leaving, _ = d.slots.get(worker, (0, False, 0))
        served = d.served.get(worker)
        age = None if served is None else d.clock - served
        return WorkerState(worker, d.clock - d.workers[worker], slots, leaving, age)
