"""Random calls against the scripts and the reference at once, with every kind of mishap between them."""

from __future__ import annotations

import os

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from groupjobs.store import Consumer
from tests.store.machine import ALL, RUNS, SELDOM, TTL, Client, Serving, lease

settings.register_profile("short", max_examples=40, stateful_step_count=40)
settings.register_profile("long", max_examples=3000, stateful_step_count=60)
PROFILE = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


class Machine(Serving):
    """Serving with workers, people, recovery and mishaps."""

    # -- workers

    @rule(data=st.data(), slots=st.integers(0, 2), leaving=SELDOM)
    def beat(self, data: st.DataObject, slots: int, leaving: bool) -> None:
        worker = self.worker(data)
        mine = [client.who for client in [*self.clients, *self.zombies] if client.who.worker == worker]
        self.same("beat", worker, slots, {who.nonce: who.pid for who in mine if data.draw(st.booleans())}, leaving)

    @rule(free=st.integers(0, 1), twice=st.booleans())
    def tick(self, free: int, twice: bool) -> None:
        for _ in range(1 + twice):
            self.same("tick", "w1:1", free)

    @rule(data=st.data(), kind=st.sampled_from(["worker", "consumer", "consumer", "pid"]))
    def reap(self, data: st.DataObject, kind: str) -> None:
        worker = self.worker(data)
        if kind == "worker":
            self.same("reap", worker)
        elif kind == "pid":
            self.same("reap", worker, "", data.draw(st.integers(1, 3)))
        elif self.clients:
            who = data.draw(st.sampled_from(self.clients)).who
            late = [(item.run, item.fence) for item in self.clients[0].items][:2]
            killed = data.draw(st.booleans())
            for _ in range(2):
                self.same("reap", who.worker, who.nonce, 0, "", late, killed)

    # -- people and recovery

    @rule(run=st.sampled_from(ALL), life=st.integers(1, 3), twice=st.booleans(), force=st.booleans())
    def withdraw(self, run: int, life: int, twice: bool, force: bool) -> None:
        for _ in range(1 + twice):
            self.same("withdraw", [(run, RUNS[run][0], life)], force)

    @rule(
        group=st.sampled_from(["", "a", "a", "b", "b"]), version=st.integers(1, 9), held=SELDOM,
        limit=st.sampled_from([None, 1, 2]), rate=st.sampled_from([None, None, (1, 30.0)]),
    )  # fmt: skip
    def hold(self, group: str, version: int, held: bool, limit: int | None, rate: tuple[int, float] | None) -> None:
        self.same("hold", group, version, held, limit, rate)

    @rule(run=st.sampled_from(ALL), life=st.integers(1, 3), which=st.integers(1, 3))
    def drop(self, run: int, life: int, which: int) -> None:
        self.same("drop", [(run, RUNS[run][0], self.fences[-min(which, len(self.fences))], life)])

    @precondition(lambda self: any(client.items for client in [*self.clients, *self.zombies]))
    @rule(data=st.data(), stale=SELDOM)
    def restore(self, data: st.DataObject, stale: bool) -> None:
        client = data.draw(st.sampled_from([c for c in [*self.clients, *self.zombies] if c.items]))
        leases = [(lease(item), client.who.nonce, client.who.worker) for item in client.items]
        self.same("restore", self.epochs[0 if stale else -1], leases)

    @rule()
    def entries(self) -> None:
        page, found = self.store.entries(), set()
        while True:
            found |= set(page.entries)
            if not page.cursor:
                break
            page = self.store.entries(page.cursor)
        assert found == set(self.model.entries().entries)

    @rule(group=st.sampled_from(sorted({group for group, _ in RUNS.values()})))
    def mend(self, group: str) -> None:
        self.same("reap", "", "", 0, group)

    # -- mishaps

    @rule(seconds=st.sampled_from([0.2, 0.5, 1, 10, 30, 60, 300]), alive=st.booleans())
    def time_passes(self, seconds: float, alive: bool) -> None:
        ms = round(seconds * 1000)
        while ms > 0:
            part = min(ms, TTL * 1000 // 3)
            self.store.now, ms = self.store.now + part, ms - part
            for worker in sorted(self.model.data.workers) if alive else ():
                self.same("beat", worker, 1, {})
            self.same("ping")

    @rule(seconds=st.sampled_from([-3600, -1, 3600]))
    def time_jumps(self, seconds: int) -> None:
        self.store.now += seconds * 1000

    @rule(data=st.data())
    def usurp(self, data: st.DataObject) -> None:
        """Redis forgets; another consumer is served what somebody still holds."""
        self.memory_loss("flush", "open")
        self.nonces += 1
        usurper = Client(Consumer(f"n{self.nonces}", self.worker(data), 9))
        self.clients = [*self.clients[-2:], usurper]
        self.enqueue_plain(ALL)
        self.advance(usurper, data.draw(st.sampled_from([1, 64])), [])

    @rule(kind=st.sampled_from(["flush", "restart"]), then=st.sampled_from(["open", "open", "look", "nothing"]))
    def memory_loss(self, kind: str, then: str) -> None:
        """Redis is empty, or its run_id is another one; then somebody opens, looks, or nothing happens."""
        self.store.now = max(self.store.now, self.store.latest)  # else fences would begin lower: rows mend that
        if kind == "flush":
            self.redis.flushall()
            self.model.forget()
        elif self.model.data.epoch:
            self.redis.hset(f"{self.store.base}:epoch", "server", "another")
            self.model.data.epoch.server = "another"
        if then != "nothing":
            self.look()
        if then == "open":
            self.open()


@pytest.mark.slow
def test_scripts_do_what_the_reference_does(client: redis.Redis) -> None:
    class Bound(Machine):
        redis = client

    run_state_machine_as_test(
        Bound,
        settings=settings(PROFILE, deadline=None, database=None, suppress_health_check=list(HealthCheck)),
    )
