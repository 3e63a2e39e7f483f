"""The crew of a worker's main process: its home, its keeper with the watchdog, and its tick."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Mapping
from typing import Any, Final

from groupjobs import bell, conf
from groupjobs.watchdog.assignment import Assignment, told
from groupjobs.watchdog.home import Home, incarnation
from groupjobs.watchdog.processes import DEAD, look
from groupjobs.worker import identity
from groupjobs.worker.hearing import hear_first
from groupjobs.worker.keeper import Keeper
from groupjobs.worker.tick import Ticker

logger = logging.getLogger("groupjobs")

HELD_BACK: Final = 5  # messages per slot, running ones among them: a little more than Celery prefetches
LAST_TICK: Final = 0.5  # seconds that it waits for a tick that is under way
FAREWELL: Final = 2.0  # seconds that the end of a worker waits for its watchdog's last words


class Crew:
    """Made before the pool forks, started when the worker is ready, ended when nothing of it runs any more."""

    def __init__(self, controller: Any) -> None:
        self.main = os.getpid()
        self.controller = controller
        self.home = Home.make()
        self.worker = incarnation(self.main)
        self.consumer: Any = None
        self.direct = ""
        self._served: frozenset[str] = frozenset()
        self._keeper: Keeper | None = None
        self._ticker: Ticker | None = None
        self._over = False
        identity.settle(self.home, self.worker)
        atexit.register(self.finish)

    @property
    def app(self) -> Any:
        """The worker's Celery app."""
        return self.controller.app

    def start(self, consumer: Any) -> None:
        """The worker takes messages through this Celery consumer: watch, beat and tick for it."""
        self.consumer = consumer
        if self._ticker is None:
            self._ticker = Ticker(self)
            self._ticker.start()
            hear_first(self.leave)

    def serve(self) -> frozenset[str]:
        """The queues that are served now. The watchdog hears of new ones and, with the first, begins."""
        queues = self._queues()
        for queue in queues - self._served:
            if self.home.worker_of(queue) is None:
                self.home.serve(queue, self.worker)
        if queues - self._served:
            self._served |= queues
            self._watch()
        return queues

    def _queues(self) -> frozenset[str]:
        """A queue is served if Celery consumes the Celery queue of its bells. Unknown while it reconnects."""
        tasks = self.consumer.task_consumer
        if tasks is None:
            return self._served
        names, default = {queue.name for queue in tasks.queues}, self.app.conf.task_default_queue
        settings = conf.current().queues.values()
        return frozenset(queue.name for queue in settings if (queue.celery_queue or default) in names)

    def _watch(self) -> None:
        self.home.wake()
        if self._keeper is None:
            level = logger.getEffectiveLevel()
            self._keeper = Keeper(
                Assignment(self.main, str(self.home.folder), self.slots(), level, told(conf.current()))
            )
            self._keeper.start()

    def slots(self) -> int:
        """How many tasks the pool runs at once."""
        if type(self.consumer.pool).__module__.endswith(".solo"):
            return 1
        return int(getattr(self.controller, "max_concurrency", None) or self.controller.concurrency)

    def free(self) -> int:
        """Slots that no task occupies and that no message received waits for."""
        from celery.worker import state

        return 0 if identity.stopping() else max(0, self.slots() - len(state.reserved_requests))

    def answered(self) -> int:
        """How many bells the pool has taken up so far."""
        from celery.worker import state

        return state.total_count[bell.CONSUME]

    def pass_on(self, queue: str, headers: Mapping[str, Any]) -> None:
        """A bell was received while every slot is taken: it rings once more, for a worker that has one.

        Bounded by what this worker holds back already, and by how many have passed it on.
        """
        from celery.worker import state

        if self.free() == 0 and len(state.reserved_requests) < HELD_BACK * self.slots():
            bell.pass_on(queue, headers)

    def leave(self) -> None:
        """The worker shuts down. May be called by a signal handler, and more than once."""
        self.home.leave()

    def finish(self) -> None:
        """Nothing of the worker runs any more, unless an execution has not signed off: then its end tells."""
        if self._over or os.getpid() != self.main:
            return
        self.leave()
        if self._ticker is not None:
            self._ticker.end()
            self._ticker.join(LAST_TICK)
        if self._alive():
            return
        self._over = True
        atexit.unregister(self.finish)
        self.home.finish()
        if self._keeper is None or self._keeper.finish(FAREWELL):
            self.home.remove()
        if identity.home() is self.home:
            identity.depart()

    def _alive(self) -> bool:
        seen = [look(known["pid"]) for known in self.home.executions.all().values()]
        return any(process is not None and process.state not in DEAD for process in seen)
