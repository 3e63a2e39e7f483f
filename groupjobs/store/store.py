"""One typed method per script: the only speaker of Redis.

Every call is safe to send twice and late. Errors of the connection are redis-py's own; a refused
argument raises BadArgument. Times are milliseconds unless said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from redis.commands.core import Script
from redis.exceptions import ResponseError

from groupjobs.store import keys, replies, scripts
from groupjobs.store.replies import Consumer, Outcome, Publication

CHUNK = 1000


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
            bells, state = bells + reply[0], replies.text(reply[1])
        return replies.EnqueueReply(bells, state)

    def step(self, consumer: Consumer, number: int, want: int, outcomes: Sequence[Outcome] = ()) -> replies.StepReply:
        """Settle `outcomes`, heal, promote, reserve up to `want` runs; want 0 settles only."""
        done = [(keys.member(o.run), o.fence) for o in outcomes if o.verb == "done"]
        rest = [settled(o) for o in outcomes if o.verb != "done"]
        reply = self.call(
            "step", *consumer, number, want,
            len(done), *chain.from_iterable(done), len(rest), *chain.from_iterable(rest),
        )  # fmt: skip
        return replies.step_reply(reply)

    def beat(
        self, worker: str, slots: int, consumers: Mapping[str, int], leaving: bool = False
    ) -> replies.BeatReply:
        """The worker is alive and watches these executions (nonce -> pid)."""
        listed = chain.from_iterable(consumers.items())
        alive, state, epoch, found = self.call("beat", worker, slots, int(leaving), len(consumers), *listed)
        registered = {replies.text(nonce): int(pid) for nonce, pid in replies.rows(found, 2)}
        return replies.BeatReply(alive == 1, replies.text(state), replies.text(epoch), registered)

    def tick(self, worker: str, free: int) -> replies.TickReply:
        """Promote, heal and answer the bells due, for a worker with `free` slots."""
        state, epoch, bells, ready, wait, unserved, age = self.call("tick", worker, free)
        return replies.TickReply(
            replies.text(state), replies.text(epoch), bells, ready, replies.optional(wait), unserved == 1, age
        )

    def reap(self, worker: str = "", consumer: str = "", pid: int = 0, group: str = "") -> replies.ReapReply:
        """A consumer, a worker, or a worker's process `pid` is dead now; or mend the held set of `group`."""
        healed, more = self.call("reap", worker, consumer, pid, group)
        return replies.ReapReply(healed, more == 1)

    def goodbye(self, consumer: Consumer) -> replies.ReapReply:
        """Sign off: what this consumer still holds is healed."""
        return self.reap(worker=consumer.worker, consumer=consumer.nonce)

    def snapshot(self, runs: Sequence[tuple[int, str]]) -> replies.Snapshot:
        """State of at most 500 runs, given with their line names, and of their groups."""
        asked = ((keys.member(run), group) for run, group in runs)
        return replies.snapshot(self.call("snapshot", len(runs), *chain.from_iterable(asked)))

    def open(self, epoch: str) -> bool:
        """End the rebuild of this epoch. False when the epoch has changed."""
        return self.call("open", epoch) == 1


def milliseconds(seconds: float) -> int:
    return math.ceil(seconds * 1000)


def published(p: Publication) -> Iterator[Any]:
    run, group, *middle, due, delay, yields = p
    return chain(
        (keys.member(run), group), middle, ("" if due is None else due, "" if delay is None else delay, int(yields))
    )


def settled(o: Outcome) -> tuple[Any, ...]:
    return (keys.member(o.run), o.fence, o.verb, o.delay_ms, int(o.yields), o.fence_to, o.owner, o.owner_worker)


def refusal(message: str, error: ResponseError) -> Exception:
    """The error of ours that a reply stands for, or the reply itself."""
    if message.startswith("BADARG "):
        return replies.BadArgument(message.removeprefix("BADARG ").partition(" script:")[0])
    if message.startswith("EPOCH "):
        return replies.EpochChanged(message)
    return error
