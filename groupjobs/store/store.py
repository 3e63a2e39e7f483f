"""One typed method per script: the only speaker of Redis.

Every call is safe to send twice and late. Errors of the connection are redis-py's own; a refused
argument raises BadArgument. Times are milliseconds unless said.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from redis.commands.core import Script
from redis.exceptions import ResponseError

from groupjobs.store import keys, reading, replies, scripts
from groupjobs.store.replies import Consumer, Lease, Outcome, Publication

CHUNK = 1000
LOOK = 50  # runs of one `snapshot`
WEEK = 604800.0  # seconds for which the end of a sweep is remembered, as in overview.lua


class Store:
    """The Redis side of one queue, over one client."""

    def __init__(
        self,
        client: Any,
        *,
        prefix: str,
        queue: str,
        ttl: float,
        consumers: int | None = None,
        group_concurrency: int = 1,
        rate: tuple[int, float] | None = None,
    ) -> None:
        self.client = client
        self.queue = queue
        self.base = keys.base(prefix, queue)
        count, seconds = rate or (0, 0.0)
        self.settings = (milliseconds(ttl), consumers or 0, group_concurrency, count, milliseconds(seconds))
        self.scripts: dict[str, Script] = {}

    def call(self, verb: str, *args: Any) -> Any:
        """Run one script; NOSCRIPT loads it again."""
        script = self.scripts.get(verb)
        if script is None:
            script = self.scripts[verb] = self.client.register_script(scripts.source(verb))
        try:
            return script(keys=[self.base], args=[*self.settings, *args])
        except ResponseError as error:
            raise refusal(str(error), error) from error

    def enqueue(self, publications: Sequence[Publication], epoch: str | None = None) -> replies.EnqueueReply:
        """Publish runs, a thousand per call. Raises EpochChanged when `epoch` is no longer current."""
        bells, state = 0, ""
        for first in range(0, max(1, len(publications)), CHUNK):
            chunk = publications[first : first + CHUNK]
            reply = self.call("enqueue", epoch or "", len(chunk), *chain.from_iterable(map(published, chunk)))
            bells, state = bells + reply[0], reading.text(reply[1])
        return replies.EnqueueReply(bells, state)

    def step(self, consumer: Consumer, number: int, want: int, outcomes: Sequence[Outcome] = ()) -> replies.StepReply:
        """Settle `outcomes`, heal, promote, reserve up to `want` runs; want 0 settles only."""
        done = [(keys.member(o.run), o.fence) for o in outcomes if o.verb == "done"]
        rest = [settled(o) for o in outcomes if o.verb != "done"]
        reply = self.call(
            "step", *consumer, number, want,
            len(done), *chain.from_iterable(done), len(rest), *chain.from_iterable(rest),
        )  # fmt: skip
        return reading.step_reply(reply)

    def beat(self, worker: str, slots: int, consumers: Mapping[str, int], leaving: bool = False) -> replies.BeatReply:
        """The worker is alive and watches these executions (nonce -> pid)."""
        listed = chain.from_iterable(consumers.items())
        alive, state, epoch, found, kills = self.call("beat", worker, slots, int(leaving), len(consumers), *listed)
        registered = {reading.text(nonce): int(pid) for nonce, pid in reading.rows(found, 2)}
        return replies.BeatReply(alive == 1, reading.text(state), reading.text(epoch), registered, reading.kills(kills))

    def tick(self, worker: str, free: int) -> replies.TickReply:
        """Promote, heal and answer the bells due, for a worker with `free` slots."""
        state, epoch, bells, ready, wait, unserved, age = self.call("tick", worker, free)
        return replies.TickReply(
            reading.text(state), reading.text(epoch), bells, ready, reading.optional(wait), unserved == 1, age
        )

    def reap(
        self,
        worker: str = "",
        consumer: str = "",
        pid: int = 0,
        group: str = "",
        overdue: Sequence[tuple[int, int]] = (),
        interrupted: bool = False,
    ) -> replies.ReapReply:
        """A consumer, a worker, or a worker's process `pid` is dead now; or mend the held set of `group`.

        `overdue`: the consumer's leases (run, fence) that lasted longer than their time limit. `interrupted`:
        the consumer was killed, which costs none of its runs a loss.
        """
        late = chain.from_iterable((keys.member(run), fence) for run, fence in overdue)
        healed, more = self.call("reap", worker, consumer, pid, group, int(interrupted), len(overdue), *late)
        return replies.ReapReply(healed, more == 1)

    def goodbye(self, consumer: Consumer) -> replies.ReapReply:
        """Sign off: what this consumer still holds is healed."""
        return self.reap(worker=consumer.worker, consumer=consumer.nonce)

    def snapshot(self, runs: Sequence[tuple[int, str]]) -> replies.Snapshot:
        """State of runs, given with their line names, and of their groups; fifty per call."""
        asked = [(keys.member(run), group) for run, group in runs]
        pages = [asked[first : first + LOOK] for first in range(0, max(1, len(asked)), LOOK)]
        return reading.snapshot([self.call("snapshot", len(page), *chain.from_iterable(page)) for page in pages])

    def keep(self, consumer: Consumer, number: int, leases: Sequence[Lease]) -> replies.KeepReply:
        """Re-assert what the consumer holds; `number` is that of its last answered step."""
        told = chain.from_iterable((keys.member(lease[0]), *lease[1:]) for lease in leases)
        state, lost, cancels = self.call("keep", *consumer, number, len(leases), *told)
        return replies.KeepReply(reading.text(state), reading.pairs(lost), reading.runs(cancels))

    def withdraw(self, items: Sequence[tuple[int, str, int]], force: bool = False) -> tuple[str, ...]:
        """Cancel (run, line name, life): per run removed, held (its consumer is asked) or absent.

        By force, the watchdog of a holder is asked to kill its process.
        """
        return tuple(reading.text(word) for word in self.each("withdraw", (int(force),), items))

    def hold(
        self,
        group: str,
        version: int,
        held: bool,
        group_concurrency: int | None = None,
        rate: tuple[int, float] | None = None,
    ) -> bool:
        """Set a group's hold and overrides; '' pauses the queue. False: Redis knows a newer version."""
        count, seconds = rate or (0, 0.0)
        args = (group, version, int(held), group_concurrency or 0, count, milliseconds(seconds))
        return bool(self.call("hold", *args) == 1)

    def drop(self, items: Sequence[tuple[int, str, int, int]]) -> int:
        """Forget entries (run, line name, fence, life as observed), never a live consumer's lease."""
        return sum(self.chunks("drop", (), items))

    def restore(self, epoch: str, leases: Sequence[tuple[Lease, str, str]]) -> tuple[bool, ...]:
        """In a rebuild: leases back to consumers (nonce, worker). Raises EpochChanged."""
        items = [(*lease, nonce, worker) for lease, nonce, worker in leases]
        return tuple(answer == 1 for answer in self.each("restore", (epoch,), items))

    def entries(self, cursor: str = "") -> replies.Page:
        """A page over everything that Redis knows, from `cursor` ('' first) on."""
        at, lines, within = json.loads(cursor or '["0", [], "0"]')
        if not lines:
            following, found, long = self.call("entries", at, "", "")
            at, lines, within = reading.text(following), [reading.text(group) for group in long], "0"
        else:
            following, found, _ = self.call("entries", at, lines[0], within)
            within = reading.text(following)
            lines = lines if within != "0" else lines[1:]
        done = at == "0" and not lines
        page = tuple((int(run), reading.text(group)) for run, group in reading.rows(found, 2))
        return replies.Page("" if done else json.dumps([at, lines, within]), page)

    def overview(self) -> replies.Overview:
        """The queue as a whole."""
        return reading.overview(self.call("overview"))

    def ping(self) -> str:
        """Run a real script; answers the queue's state."""
        return reading.text(self.call("ping"))

    def turn(self, name: str, seconds: float) -> bool:
        """Whether this process does the periodic duty `name` now: one per queue in so many seconds."""
        token = secrets.token_hex(8)
        before = self.client.set(f"{self.base}:turn:{name}", token, nx=True, get=True, px=milliseconds(seconds))
        return before is None or reading.text(before) == token

    def swept(self, go_on: int = 0) -> None:
        """A full sweep has ended, and the next one goes on after run `go_on`."""
        self.client.set(f"{self.base}:turn:swept", go_on, px=milliseconds(WEEK))

    def swept_to(self) -> int:
        """After which run the next full sweep goes on; 0 is from the start."""
        return int(self.client.get(f"{self.base}:turn:swept") or 0)

    def count(self, numbers: Mapping[str, int]) -> None:
        """Add to counters of the queue in one round trip: statistics, which may be counted twice or get lost."""
        pipeline = self.client.pipeline(transaction=False)
        for name, number in numbers.items():
            pipeline.hincrby(f"{self.base}:stats", name, number)
        pipeline.execute()

    def keep_turn(self, name: str, seconds: float) -> None:
        """The process that does this duty is still at it."""
        self.client.pexpire(f"{self.base}:turn:{name}", milliseconds(seconds))

    def end_turn(self, name: str) -> None:
        """The duty is done, or given up: the next may do it at once."""
        self.client.delete(f"{self.base}:turn:{name}")

    def chunks(self, verb: str, first: tuple[Any, ...], items: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """One call per thousand items, each of which begins with a run."""
        for start in range(0, len(items), CHUNK):
            chunk = items[start : start + CHUNK]
            told = chain.from_iterable((keys.member(item[0]), *item[1:]) for item in chunk)
            yield self.call(verb, *first, len(chunk), *told)

    def each(self, verb: str, first: tuple[Any, ...], items: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """The answers to single items."""
        return chain.from_iterable(self.chunks(verb, first, items))

    def open(self, epoch: str) -> bool:
        """End the rebuild of this epoch. False when the epoch has changed."""
        return bool(self.call("open", epoch) == 1)


def milliseconds(seconds: float) -> int:
    """Whole milliseconds, rounded up."""
    return math.ceil(seconds * 1000)


def published(p: Publication) -> Iterator[Any]:
    """The arguments of one publication."""
    run, group, *middle, due, delay, yields = p
    return chain(
        (keys.member(run), group), middle, ("" if due is None else due, "" if delay is None else delay, int(yields))
    )


def settled(o: Outcome) -> tuple[Any, ...]:
    """The arguments of one outcome other than done."""
    return (keys.member(o.run), o.fence, o.verb, o.delay_ms, int(o.yields), o.fence_to, o.owner, o.owner_worker)


def refusal(message: str, error: ResponseError) -> Exception:
    """The error of ours that a reply stands for, or the reply itself."""
    if message.startswith("BADARG "):
        return replies.BadArgument(message.removeprefix("BADARG ").partition(" script:")[0])
    if message.startswith("EPOCH "):
        return replies.EpochChanged(message)
    if message.startswith("FORMAT "):
        return replies.NewerFormat("a newer release of groupjobs made this queue's keys")
    return error
