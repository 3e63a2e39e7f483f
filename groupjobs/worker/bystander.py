"""A worker that serves none of the queues says that it lives, so that who asks why nothing runs is told the truth."""

from __future__ import annotations

import os
import time

from groupjobs import conf
from groupjobs.store import store_for
from groupjobs.watchdog.home import incarnation

SHORTEST = 0.5  # seconds between two beats


class Bystander:
    """Beats without slots, in one queue after the other.

    Both verbs answer whether they have asked Redis anything, and raise what its client raises.
    """

    def __init__(self) -> None:
        self._name = ""
        self._turn = 0
        self._due = 0.0
        self._told: set[str] = set()

    def stand_by(self) -> bool:
        """No queue is served. The first look is for a worker that only reconnects."""
        now = time.monotonic()
        if not self._name:
            self._name, self._due = incarnation(os.getpid()), now + 1.0
        if now < self._due:
            return False
        queues = sorted(conf.current().queues)
        self._due = now + max(SHORTEST, conf.current().worker_ttl / 3 / len(queues))
        queue = queues[self._turn % len(queues)]
        self._turn += 1
        store_for(queue).beat(self._name, 0, {})
        self._told.add(queue)
        return True

    def step_in(self) -> bool:
        """A queue is served, or the worker ends: the bystander is no more."""
        name, self._name = self._name, ""
        told, self._told = self._told, set()
        for queue in told:
            store_for(queue).reap(worker=name)
        return bool(told)
