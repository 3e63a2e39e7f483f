"""Both sides of the comparison: every call goes to the scripts and to the reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import redis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from groupjobs.store import Consumer, EpochChanged, Lease, Outcome, Publication, keys
from groupjobs.store.reference import Reference
from groupjobs.store.replies import Reservation
from tests.store.invariants import Limits, check
from tests.store.travel import Timed

RUNS = {
    1: ("a", 0), 2: ("a", 0), 3: ("a", -(2**53)), 4: ("b", 2**53), 5: ("b", 7),
    6: ("c", 0), 2**63 - 1: ("a", 5), 8: (keys.line_name("", 8), 0),
}  # fmt: skip
PRIORITIES = {1: 0, 2: 7, 3: 0, 4: -7, 5: 0, 6: 7, 2**63 - 1: 0, 8: 0}
ALL = sorted(RUNS)
TTL = 50
VERBS = ("done", "done", "done", "retry", "back", "suspect", "hold", "owner", None)
SELDOM = st.sampled_from([False] * 7 + [True])
Call = tuple[Consumer, int, int, list[Outcome]]


@dataclass
class Client:
    """A consumer as it sees itself."""

    who: Consumer
    number: int = 0
    items: list[Reservation] = field(default_factory=list)


class Serving(RuleBasedStateMachine):
    """Producers and consumers."""

    redis: redis.Redis

    @initialize(
        limit=st.sampled_from([1, 1, 2]),
        rate=st.sampled_from([None, None, (2, 30.0), (3, 1.0)]),
        most=st.sampled_from([None, 2]),
    )
    def begin(self, limit: int, rate: tuple[int, float] | None, most: int | None) -> None:
        self.redis.flushall()
        options: Any = {"ttl": TTL, "consumers": most, "group_concurrency": limit, "rate": rate}
        self.store = Timed(self.redis, **options)
        self.model = Reference(now=lambda: self.store.now, queue="q", **options)
        self.limits = Limits(limit, rate)
        self.clients: list[Client] = []
        self.zombies: list[Client] = []
        self.sent: list[Call] = []
        self.epochs: list[str] = []
        self.fences = [0]
        self.incarnations = {"w1": 1, "w2": 1}
        self.nonces = 0
        self.look()
        self.open()

    def same(self, verb: str, *args: Any) -> Any:
        """Both sides answer the same; afterwards everything that can be asked is the same."""
        self.store.now += 1
        answers = [call(getattr(side, verb), args) for side in (self.store, self.model)]
        assert answers[0] == answers[1], f"{verb}{args}\n{answers[0]}\n{answers[1]}"
        self.compare()
        return answers[0]

    def compare(self) -> None:
        check(self.store, self.limits)
        asked = [(run, group) for run, (group, _) in RUNS.items()]
        agree(self.store.snapshot(asked)._asdict(), self.model.snapshot(asked)._asdict())
        agree(flat(self.store.overview()), flat(self.model.overview()))

    def look(self) -> None:
        """Somebody notices what the epoch is."""
        self.epochs.append(self.same("tick", "nobody", 0).epoch)

    @rule(stale=SELDOM)
    def open(self, stale: bool = False) -> None:
        self.same("open", self.epochs[0 if stale else -1])
        self.look()

    # -- producers

    @rule(runs=st.lists(st.sampled_from(ALL), min_size=2, max_size=8, unique=True))
    def enqueue_plain(self, runs: list[int]) -> None:
        self.same("enqueue", [Publication(run, *RUNS[run], PRIORITIES[run]) for run in runs])

    @rule(data=st.data(), twice=st.booleans(), stale=SELDOM)
    def enqueue(self, data: st.DataObject, twice: bool, stale: bool) -> None:
        """Republications, retries, schedules, with fences and hints; the same run may come twice."""
        runs = data.draw(st.lists(st.sampled_from(ALL), min_size=1, max_size=4))
        told = [self.publication(data, run) for run in runs]
        for _ in range(1 + twice):
            self.same("enqueue", told, self.epochs[0] if stale else None)

    def publication(self, data: st.DataObject, run: int) -> Publication:
        life, alone = data.draw(st.sampled_from([1, 1, 2, 3])), data.draw(st.sampled_from([0, 0, 1, 2]))
        due, delay = data.draw(st.sampled_from([(None, None), (None, None), (None, 30), (30, None), (-30, None)]))
        return Publication(
            run, *RUNS[run], PRIORITIES[run], life, data.draw(st.sampled_from([0, *self.fences[-3:]])), alone,
            due and self.store.now + due * 1000, delay and delay * 1000, data.draw(st.booleans()),
        )  # fmt: skip

    # -- consumers

    def client(self, data: st.DataObject) -> Client:
        """A consumer at work, a new one, or (seldom) one that was told to end."""
        pool = [*self.clients, *self.zombies] if data.draw(SELDOM) else self.clients
        chosen = data.draw(st.integers(0, len(pool) if len(self.clients) < 3 else len(pool) - 1))
        if chosen < len(pool):
            return pool[chosen]
        self.nonces += 1
        made = Client(Consumer(f"n{self.nonces}", self.worker(data), self.nonces % 3 + 1))
        self.clients.append(made)
        return made

    def worker(self, data: st.DataObject) -> str:
        """One of two workers; each has a new incarnation once it was judged dead."""
        name = data.draw(st.sampled_from(["w1", "w2"]))
        while self.model.ended(f"{name}:{self.incarnations[name]}"):
            self.incarnations[name] += 1
        return f"{name}:{self.incarnations[name]}"

    @rule(data=st.data(), want=st.sampled_from([0, 1, 1, 2, 3, 64]), lost=st.sampled_from([0, 0, 0, 1]))
    def step(self, data: st.DataObject, want: int, lost: int) -> None:
        """Any outcomes; a lost reply is asked for again."""
        client = self.client(data)
        told = [outcome for item in client.items if (outcome := self.outcome(data, item))]
        self.advance(client, want, told, 1 + lost)

    @rule(data=st.data(), want=st.sampled_from([1, 3, 64]), rounds=st.integers(1, 3), fresh=st.booleans())
    def serve(self, data: st.DataObject, want: int, rounds: int, fresh: bool) -> None:
        """A consumer that works as it should: every run is done."""
        if fresh:
            self.enqueue_plain(ALL)
        client = self.client(data)
        for _ in range(rounds):
            told = [Outcome(item.run, item.fence, "done") for item in client.items]
            if self.advance(client, want, told):
                break

    def advance(self, client: Client, want: int, told: list[Outcome], times: int = 1) -> bool:
        """The client's next step, sent so many times. Whether it was told to end."""
        client.number += 1
        call = (client.who, client.number, want, told)
        self.sent.append(call)
        replies = [self.send(call) for _ in range(times)]
        kept = {outcome.run for outcome in told if outcome.verb == "hold"} if times == 1 else set()
        client.items = [item for item in client.items if item.run in kept] + list(replies[-1].reservations)
        ended = bool(replies[-1].ended or replies[-1].state == "refused")
        if ended and client in self.clients:
            self.clients.remove(client)
            self.zombies = [*self.zombies[-2:], client]
        return ended

    def send(self, call: Call) -> Any:
        reply = self.same("step", *call)
        if reply.state == "open":
            new = [item.fence for item in reply.reservations]
            assert new == sorted(new)
            assert not new or new[0] > max(self.fences), "fences only grow"
            self.fences += new
            self.alone_in_its_group(reply.reservations)
        return reply

    def outcome(self, data: st.DataObject, item: Reservation) -> Outcome | None:
        verb = data.draw(st.sampled_from(VERBS))
        if verb is None:
            return None
        delay, yields = data.draw(st.sampled_from([0, 0, 30_000])), data.draw(st.booleans())
        owner = data.draw(st.sampled_from([*(c.who for c in self.clients), Consumer("nobody", "w9", 1)]))
        to = self.fences[-1] if verb == "owner" else data.draw(st.sampled_from([0, *self.fences[-3:]]))
        return Outcome(item.run, item.fence, verb, delay, yields, to, owner.nonce, owner.worker)

    def alone_in_its_group(self, reserved: tuple[Reservation, ...]) -> None:
        """Right after a reservation no more consumers hold the group than its limit."""
        k = check(self.store, self.limits)
        for group in {item.group for item in reserved}:
            rules = k.hashes.get("groups", {}).get(group, "0 0 0 0 0").split()
            assert len({k.runs[run]["c"] for run in k.held[group]}) <= (int(rules[2]) or self.limits.limit)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def late_copy(self, data: st.DataObject) -> None:
        """A copy of an earlier step, the wire's or a zombie's."""
        self.send(data.draw(st.sampled_from(self.sent[-6:])))

    @precondition(lambda self: self.clients or self.zombies)
    @rule(data=st.data(), back=st.sampled_from([0, 0, 0, 1]), twice=st.booleans())
    def keep(self, data: st.DataObject, back: int, twice: bool) -> None:
        client = data.draw(st.sampled_from([*self.clients, *self.zombies]))
        leases = [lease(item) for item in client.items if data.draw(st.sampled_from([True, True, False]))]
        for _ in range(1 + twice):
            self.same("keep", client.who, max(0, client.number - back), leases)


def call(method: Any, args: tuple[Any, ...]) -> Any:
    try:
        return method(*args)
    except EpochChanged:
        return EpochChanged


def agree(real: dict[str, Any], model: dict[str, Any]) -> None:
    """The scripts say what the reference says."""
    differ = {key for key in {*real, *model} if real.get(key) != model.get(key)}
    assert not differ, "\n".join(f"{key}:\n  {real.get(key)}\n  {model.get(key)}" for key in differ)


def flat(view: Any) -> dict[str, Any]:
    stats = {name: number for name, number in view.stats.items() if number}
    return {**view._asdict(), "workers": set(view.workers), "consumers": set(view.consumers), "stats": stats}


def lease(r: Reservation) -> Lease:
    return Lease(r.run, r.group, RUNS[r.run][1], r.life, r.fence, int(r.alone))
