"""One walk through a scenario: the real scripts, rows, consumers and recovery, in an order that a seed decides."""

from __future__ import annotations

import itertools
import os
import random
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from groupjobs import control, ledger, recovery
from groupjobs.consumer.executions import Unwatched
from groupjobs.consumer.pace import Pace
from groupjobs.consumer.serving import Service
from groupjobs.ledger import Batch
from groupjobs.lifecycle import LIVE
from groupjobs.models import JobGroup, JobRun
from groupjobs.moves import publish
from groupjobs.store import Consumer, Store, store_for
from tests.core.rows import QUEUE
from tests.core.serving import never, traces
from tests.model.actors import Actor, Killed, Sent
from tests.model.acts import acts
from tests.model.faults import FAULTS, remember
from tests.model.protocol_model import Scenario
from tests.servers.waiting import wait_until

_incarnations = itertools.count()
TURNS = 250


class Same(Pace):
    """A batch size that does not adapt."""

    def ran(self, count: int, seconds: float) -> None:
        """Whatever the time."""


@dataclass
class Worker:
    """A worker of a walk, in one of its incarnations."""

    name: str = ""
    actor: Actor | None = None
    nonce: str = ""
    paused: bool = False
    zombie: bool = False

    def reborn(self) -> None:
        """A new process, which serves nothing yet."""
        self.name, self.actor = f"here:{os.getpid()}:w{next(_incarnations)}", None
        self.paused = self.zombie = False


@dataclass
class Walk:
    """What has happened so far, and what may still happen."""

    scenario: Scenario
    seed: int
    store: Store
    sent: Sent
    workers: list[Worker] = field(default_factory=list)
    others: list[Actor] = field(default_factory=list)
    zombies: list[Actor] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    inside: dict[Actor, str] = field(default_factory=dict)
    begun: list[int] = field(default_factory=list)
    ended: dict[tuple[int, int], list[Actor]] = field(default_factory=lambda: defaultdict(list))
    deaths: Counter[int] = field(default_factory=Counter)
    older: dict[bytes, bytes] | None = None

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.left = Counter({**self.scenario.faults, "recover": self.scenario.recover})
        self.workers = [Worker() for _ in set(self.scenario.slots)]
        for worker in self.workers:
            worker.reborn()

    # -- what happens

    def enqueue(self) -> None:
        """Rows in their order; a publication may be lost with its process."""
        self.runs: list[int] = []
        for index, group in enumerate(self.scenario.groups):
            [run] = ledger.insert(
                Batch(QUEUE, acts.job_name, [(f"g{group}", "[]", f'{{"group": "g{group}"}}', None)],
                      max_attempts=2, max_losses=self.scenario.max_losses[index])
            )  # fmt: skip
            self.runs.append(run.pk)
            if self.left["unpublish"] and self.random.random() < 0.5:
                self.left["unpublish"] -= 1
                self.said.append(f"publication of {index} is lost")
            else:
                publish([run])

    def bell(self, worker: Worker) -> None:
        """A consumer of this worker begins."""
        worker.nonce = uuid.uuid4().hex[:16]
        service = Service(QUEUE, Consumer(worker.nonce, worker.name, os.getpid()), never, Unwatched())
        service.pace = Same(0)
        service.pace.want = self.scenario.want
        service.report = lambda *_: None
        worker.actor = Actor(service.run, worker.name)
        worker.actor.part = self.handler

    def handler(self, actor: Actor, context: Any) -> None:
        """A handler: only one of a group at a time among those that live."""
        run = JobRun.objects.get(pk=context.run_id)
        number = self.runs.index(run.pk)
        self.said.append(f"{actor.worker} begins {number} under {context.fence}")
        clash = [other for other, group in self.inside.items() if group == run.group and self.lives(other)]
        assert not (clash and self.lives(actor)), "two of a group at once"
        self.begun.append(number)
        self.inside[actor] = run.group
        try:
            actor.stop()
            if number in self.scenario.poison:
                self.said.append(f"{number} kills {actor.worker}")
                self.die(actor)
                raise Killed
            if number in self.scenario.raises and context.attempt == 1:
                raise ValueError(number)
            self.ended[run.pk, run.life].append(actor)
        finally:
            self.inside.pop(actor, None)

    def lives(self, actor: Actor) -> bool:
        return not actor.killed and actor not in self.zombies

    def die(self, actor: Actor, seen: bool = True) -> None:
        """One process ends. When it is of a pool, its watchdog has seen it."""
        worker = next(worker for worker in self.workers if worker.actor is actor)
        lost = JobRun.objects.filter(consumer=worker.nonce, status="RUNNING", alone=True)
        self.deaths.update(lost.values_list("pk", flat=True))
        actor.kill()
        self.inside.pop(actor, None)
        worker.actor = None
        if seen:
            self.others.append(Actor(partial(store_for(QUEUE).reap, worker=worker.name, consumer=worker.nonce)))

    def silence(self, worker: Worker) -> None:
        """Its last beat is longer ago than a TTL."""
        self.store.client.zadd(f"{self.store.base}:workers", {worker.name: -1e9}, xx=True)

    def beat(self) -> None:
        """Every watchdog that lives."""
        for worker in self.workers:
            if not worker.paused:
                listed = {worker.nonce: os.getpid()} if worker.actor and not worker.actor.ended else {}
                self.store.beat(worker.name, 1, listed)

    def time(self) -> None:
        """A TTL passes for a rebuild; the living have beaten in it."""
        self.beat()
        self.store.client.hincrby(f"{self.store.base}:epoch", "since", -(10**6))

    # -- the walk

    def ring(self) -> None:
        for worker in self.workers:
            if not worker.paused and (worker.actor is None or worker.actor.ended):
                return self.bell(worker)
        return None

    def wake(self) -> None:
        for worker in self.workers:
            if worker.paused and worker.actor:
                worker.paused = False

    def fault(self) -> None:
        if self.older is None and "restore" in self.scenario.faults and self.random.random() < 0.5:
            return remember(self)
        names = [name for name, count in self.left.items() if count and name != "unpublish"]
        if names:
            name = self.random.choice(names)
            self.left[name] -= 1
            self.said.append(name)
            FAULTS[name](self)
        return None

    def advance(self) -> None:
        able = [w.actor for w in self.workers if w.actor and not w.actor.ended and not w.paused]
        able += [actor for actor in self.others if not actor.ended]
        if able:
            self.random.choice(able).turn()

    def rebuild(self) -> None:
        if self.store.ping() != "rebuild":
            return
        if self.random.random() < 0.5:
            self.time()
        else:
            recovery.rebuild(QUEUE)

    def go(self) -> None:
        """Enqueue, and let the seed decide; then the faults are over, and everything comes to its end."""
        self.enqueue()
        for _ in range(self.random.randint(10, 60)):
            self.random.choices([self.advance, self.fault, self.ring, self.rebuild, self.wake], [12, 2, 2, 1, 1])[0]()
        self.left.pop("unpublish", None)
        while +self.left:
            self.random.choice([self.advance, self.fault])()
        for turn in range(TURNS):
            self.wake()
            self.advance()
            self.random.choice([self.ring, self.rebuild, self.advance])()
            if turn > 20 and not self.busy():
                break
        self.finish()

    def busy(self) -> bool:
        actors = [*self.others, *(worker.actor for worker in self.workers if worker.actor)]
        return any(not actor.ended for actor in actors)

    def finish(self) -> None:
        """No fault any more: nothing is stuck."""
        while self.busy():
            self.wake()
            self.advance()
        self.told_of_holds()
        control.resume(QUEUE, "g0")
        if "unpublish" in self.scenario.faults:
            recovery.recover()
        wait_until(self.served, what="nothing is stuck, and no recovery is needed")
        assert recovery.recover().moved() == 0

    def told_of_holds(self) -> None:
        """Whichever word of several came last, the newest one counts."""
        if self.scenario.faults.keys() == {"hold"}:
            [flag] = [state.held_flag for state in self.store.snapshot([(self.runs[0], "g0")]).groups.values()] or [
                False
            ]
            assert flag == JobGroup.objects.filter(group="g0", held=True).exists()

    def served(self) -> bool:
        """One more consumer of each worker: whether that was all."""
        while not recovery.rebuild(QUEUE):
            self.time()
        for worker in self.workers:
            worker.reborn()
            self.bell(worker)
            while self.busy():
                self.advance()
        return not JobRun.objects.filter(status__in=LIVE).exists() and not traces(self.store)
