"""The rules that the reference store's verbs share: the scripts' lib in Python."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable

from groupjobs.store.reference.data import Data, Epoch, Known, Rule


class Memory:
    """The data and the shared rules; `now` answers Redis's TIME in ms."""

    def __init__(self, now: Callable[[], int], ttl: int, consumers: int | None, default: Rule) -> None:
        self.time = now
        self.ttl = ttl
        self.most = consumers
        self.default = default
        self.server = "a"
        self.data = Data()
        self.now = 0
        self.state = ""
        self.touched: dict[str, int | None] = {}

    def notice(self) -> str:
        """What every verb begins with: the clock goes on, a lost or foreign epoch starts a rebuild."""
        d, self.now = self.data, self.time()
        passed = self.now - (self.now if d.last is None else d.last)
        d.clock, d.last = d.clock + max(0, min(passed, self.ttl // 3)), self.now
        if d.epoch is None or d.epoch.server != self.server:
            number = max(self.now * 1000, d.epoch.number + 1 if d.epoch else 0)
            d.epoch = Epoch(self.server, number, d.clock)
            d.counter = max(d.counter, self.now * 1000)
        self.state = "open" if d.epoch.open else "rebuild"
        return self.state

    @property
    def epoch(self) -> str:
        """The number of the epoch."""
        assert self.data.epoch
        return str(self.data.epoch.number)

    def rebuilding_ms(self) -> int:
        """How long the rebuild has lasted by the queue's clock."""
        epoch = self.data.epoch
        return self.data.clock - epoch.since if epoch and not epoch.open else 0

    # -- ready and later

    def rule(self, group: str) -> Rule:
        """A group's hold and limits."""
        return self.data.rules.get(group, self.default)

    def paused(self) -> bool:
        """Whether the whole queue waits."""
        return self.rule("").held

    def full_at(self, group: str, rate: tuple[int, float]) -> float:
        """When the group's bucket of tokens will be full."""
        return max(self.now, min(self.data.tokens.get(group, 0), self.now + rate[1]))

    def tokens(self, group: str, most: int) -> int:
        """How many of `most` runs the group's rate lets begin now."""
        rate = self.rule(group).rate
        if rate is None:
            return most
        if self.token_at(group) > self.now:
            return 0
        return min(most, max(1, int((self.now + rate[1] - self.full_at(group, rate)) * rate[0] / rate[1])))

    def purge_tokens(self) -> None:
        """Full buckets need no mention."""
        self.data.tokens = {group: full for group, full in self.data.tokens.items() if full > self.now}

    def token_at(self, group: str) -> int:
        """When the group may take its next token."""
        rate = self.rule(group).rate
        return math.ceil(self.full_at(group, rate) - rate[1] + rate[1] / rate[0]) if rate else 0

    def touch(self, group: str, lift: int | None = None) -> None:
        """A group may have changed places; `lift` is the priority of a publication."""
        before = self.touched.get(group)
        self.touched[group] = before if lift is None else max(lift, lift if before is None else before)

    def refresh(self) -> None:
        """At the end of each phase: every touched group to where it belongs."""
        for group, lift in self.touched.items():
            self.place(group, lift)
        self.touched = {}

    def place(self, group: str, lift: int | None) -> None:
        """In `ready`, in `later`, or in neither."""
        d, line, rule = self.data, self.data.lines[group], self.rule(group)
        if not line or rule.held or len(d.held[group]) >= rule.limit:
            d.ready.pop(group, None)
            d.later.pop(group, None)
            return
        head = d.entries[line[0][1]]
        at = max(head.at or 0, self.token_at(group))
        if at > self.now:
            d.ready.pop(group, None)
            d.later[group] = at
            return
        d.later.pop(group, None)
        rank = self.now - 1000 * (head.priority if lift is None else max(lift, head.priority))
        d.ready[group] = min(rank, d.ready.get(group, rank))

    # -- entries and leases

    def put(self, e: Known, at: int | None = None, yields: bool = False) -> None:
        """To its place: not to run before `at`; with `yields` it joins its line only then."""
        e.consumer, e.worker, e.cancel, e.again = "", "", 0, 0
        e.at = at if at is not None and at > self.now else None
        e.scheduled = e.at is not None and yields
        self.data.entries[e.run] = e
        if not e.scheduled:
            insort(self.data.lines[e.group], e.place)
        self.touch(e.group)

    def take(self, e: Known) -> None:
        """Out of its line."""
        if not e.scheduled:
            self.data.lines[e.group].remove(e.place)
        e.scheduled = False
        self.touch(e.group)

    def unlease(self, e: Known) -> None:
        """From its holder."""
        self.data.leases[e.consumer].discard(e.run)
        self.data.held[e.group].discard(e.run)

    def lease(self, e: Known, consumer: str, worker: str) -> None:
        """To a consumer."""
        e.consumer, e.worker, e.at, e.scheduled = consumer, worker, None, False
        self.data.entries[e.run] = e
        self.data.leases[consumer].add(e.run)
        self.data.held[e.group].add(e.run)
        self.touch(e.group)

    def release(self, e: Known, how: str, at: int | None = None, yields: bool = False) -> None:
        """End a lease: done, retry, back or lost."""
        self.data.stats[how] += 1
        self.unlease(e)
        self.touch(e.group)
        if how == "done" and not e.again:
            del self.data.entries[e.run]
            return
        if e.again > e.life:
            e.life, at = e.again, None
        if how == "lost":
            e.healed, e.alone = e.fence, max(e.alone, 1)
        elif how != "back":
            e.healed, e.interrupted, e.overdue, e.alone = 0, False, 0, 2 if e.alone == 2 else 0
        self.put(e, at, yields)

    def raise_counter(self, fences: Iterable[int]) -> None:
        """Never hand out a fence that somebody has."""
        self.data.counter = max(self.data.counter, *fences, 0)
