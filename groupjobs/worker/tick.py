"""The tick: a thread of the main process that looks at each queue, rings bells that are due and asks for sweeps."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from redis.exceptions import RedisError

from groupjobs import bell, conf
from groupjobs.outage import Outage
from groupjobs.store import store_for
from groupjobs.store.replies import TickReply
from groupjobs.watchdog.pulse import interval
from groupjobs.worker import identity
from groupjobs.worker.bystander import Bystander
from groupjobs.worker.sweeping import QUICK, Sweeps

logger = logging.getLogger("groupjobs")

REDIS_ERRORS: Final = (RedisError, OSError)
BUDGET: Final = 2.6  # commands per second that an idle worker may send in all
SHORTEST: Final = 0.1  # seconds between two ticks of a queue, unless there is more to do at once
UNANSWERED: Final = 0.21  # seconds after which a bell that nobody answers is worth another look
LONGEST_PAUSE: Final = 2.0  # seconds between two tries while Redis is down
SELF_PAUSE: Final = (0.5, 8.0)  # seconds between two bells to ourselves that nobody answers; doubles


def pace(queues: int, ttl: float) -> float:
    """Seconds between two ticks of a queue of an idle worker: what its beats and quick sweeps leave of the budget."""
    others = queues * (1 / interval(ttl) + 2 / QUICK)
    return min(queues / max(0.5, BUDGET - others), max(1.0, queues / 2))


class Side(Protocol):
    """The worker's side of a tick. `direct`: the Celery queue of this worker alone, '' when it has none."""

    direct: str

    def serve(self) -> frozenset[str]:
        """The queues that are served now."""

    def free(self) -> int:
        """Slots of the pool that nothing occupies or waits for."""

    def answered(self) -> int:
        """How many bells the pool has taken up so far."""


class QueueTick:
    """What this worker does about one queue each time it looks."""

    def __init__(self, queue: str, worker: Side) -> None:
        self.queue = queue
        self.due = 0.0
        self.failures = 0
        self._worker = worker
        self._answered = 0
        self._sweeps = Sweeps(conf.current().sweep_interval)
        self._self_rung = 0.0
        self._self_pause = 0.0

    def look(self, free: int, usual: float) -> bool:
        """One tick, True; raises what the Redis client raises. `usual`: seconds until the next if nothing is due."""
        began, store = time.monotonic(), store_for(self.queue)
        self.due = began + min(2.0**self.failures * usual, LONGEST_PAUSE)
        self.failures += 1
        reply = store.tick(identity.current(self.queue), free)
        self.failures = 0
        self.due = began + self._wait(reply, free, usual)
        self._ring(reply, free)
        for kind in self._sweeps.wanted(reply, store):
            bell.sweep(self.queue, kind, self._worker.direct if free > 0 else "")
        return True

    @staticmethod
    def _wait(reply: TickReply, free: int, usual: float) -> float:
        if reply.wait_ms == 0:
            return 0.0
        pauses = [usual]
        if reply.wait_ms is not None:
            pauses.append(max(SHORTEST, reply.wait_ms / 1000))
        if reply.ready and free > 0 and not reply.unserved:
            pauses.append(UNANSWERED)
        return min(pauses)

    def _ring(self, reply: TickReply, free: int) -> None:
        bells, answered = reply.bells, self._worker.answered()
        if answered != self._answered or not reply.unserved or free <= 0:
            self._answered, self._self_pause = answered, 0.0
        if reply.unserved and free > 0 and self._self_due():
            bell.ring_self(self.queue, self._worker.direct)
            bells -= 1
        if bells > 0:
            bell.ring(self.queue, bells)

    def _self_due(self) -> bool:
        """Whether to ring for ourselves now. A bell that no broker takes is no reason to wait longer."""
        first, longest = SELF_PAUSE
        if bell.unheard():
            self._self_pause = min(self._self_pause, first)
        if time.monotonic() < self._self_rung + self._self_pause:
            return False
        self._self_rung, self._self_pause = time.monotonic(), min(max(first, 2 * self._self_pause), longest)
        return True


class Ticker(threading.Thread):
    """Looks at every queue that the worker serves, for as long as it does not shut down."""

    def __init__(self, worker: Side) -> None:
        super().__init__(name="groupjobs-tick", daemon=True)
        self._worker = worker
        self._queues: dict[str, QueueTick] = {}
        self._outage = Outage("Redis (ticks)")
        self._ended = threading.Event()
        self._idle_until = 0.0  # while no queue is served
        self._bystander = Bystander()

    def end(self) -> None:
        """No tick begins after this."""
        self._ended.set()

    def run(self) -> None:
        """Tick until the worker shuts down."""
        while not self._ended.wait(self._pause()) and not identity.stopping():
            try:
                self._look()
            except Exception:
                logger.exception("The tick failed; it goes on.")
                self._ended.wait(LONGEST_PAUSE)
        self._ask(self._bystander.step_in)

    def _pause(self) -> float:
        """At most half a second, in which a shutdown or a queue newly served is noticed."""
        due = min((tick.due for tick in self._queues.values()), default=self._idle_until)
        return max(0.01, min(due - time.monotonic(), 0.5))

    def _look(self) -> None:
        served = self._worker.serve()
        self._idle_until = time.monotonic() + 1.0
        self._queues = {queue: self._queues.get(queue) or QueueTick(queue, self._worker) for queue in served}
        usual = pace(len(served), conf.current().worker_ttl)
        self._ask(self._bystander.step_in if served else self._bystander.stand_by)
        for tick in self._queues.values():
            if time.monotonic() >= tick.due:
                self._ask(partial(tick.look, self._worker.free(), usual))

    def _ask(self, call: Callable[[], bool]) -> None:
        """`call` answers whether it has asked Redis anything."""
        try:
            asked = call()
        except REDIS_ERRORS as error:
            self._outage.failed(error, "bells and sweeps wait until it is back")
        else:
            if asked:
                self._outage.ended()
