"""Executions: where a consumer tells its worker's watchdog that it begins, what limit its run has, and its end."""

from __future__ import annotations

import logging
import time

from groupjobs.watchdog.home import Execution
from groupjobs.worker import identity

logger = logging.getLogger("groupjobs")


class Executions:
    """The consumers of one queue in this process. Nothing is raised: without a record the TTL still decides."""

    def __init__(self, queue: str, worker: str) -> None:
        self.queue = queue
        self.worker = worker
        self.home = identity.home()

    def register(self, nonce: str, pid: int) -> None:
        """This execution, in process `pid`, serves from now on."""
        self._put(nonce, {"queue": self.queue, "worker": self.worker, "pid": pid})

    def sign_off(self, nonce: str) -> None:
        """This execution has ended."""
        if self.home is not None:
            self.home.executions.take(nonce)
            self.home.wake()

    def deadline(self, nonce: str, run: int, fence: int, seconds: float) -> None:
        """Kill this execution's process, a child of the pool, if `clear` is not called within so many seconds."""
        known = self._get(nonce)
        if known is not None:
            self._put(nonce, {**known, "run": run, "fence": fence, "until": time.monotonic() + seconds})

    def clear(self, nonce: str) -> None:
        """The run has ended in time."""
        known = self._get(nonce)
        if known is not None:
            self._put(nonce, {"queue": known["queue"], "worker": known["worker"], "pid": known["pid"]})

    def _get(self, nonce: str) -> Execution | None:
        """None also when the watchdog has taken the record away: then this execution is dead to the fleet."""
        known: Execution | None = self.home.executions.get(nonce) if self.home is not None else None
        return known

    def _put(self, nonce: str, known: Execution) -> None:
        if self.home is None:
            return
        try:
            self.home.executions.put(nonce, known)
        except OSError as error:
            logger.warning("The watchdog cannot be told of a consumer of %s: %s", self.queue, error)
        self.home.wake()
