"""Keeps the workers of `make serve` running, does the damage that the pages ask for, and tells how it healed."""

from __future__ import annotations

import time
from typing import Any

from project.demo import healing
from project.demo.healing import Healing
from project.demo.processes import Program
from project.demo.stage import Stage

TOLD = 5  # faults that the pages show
AIM = 2.0  # seconds


class Supervisor:
    """Looks at everything again and again; the caller pauses in between."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._healings: list[Healing] = []
        self._faults = 0
        self._aiming = 0.0  # until when a kill waits for a worker that has something in hand

    @property
    def pause(self) -> float:
        """Seconds until the next look: short while a kill is aimed or a healing measured."""
        return 0.01 if self._aiming or not all(fault.over for fault in self._healings) else 0.2

    def look(self) -> None:
        """Take orders, replace dead workers, watch healings, and tell; DemoFailed when the web server has ended."""
        self._stage.web.check()
        for order in self._stage.desk.orders():
            if order == "kill":
                self._aiming = time.monotonic() + AIM
            else:
                self._flush()
        if self._aiming:
            self._aim()
        for worker in [worker for worker in self._stage.workers if worker.status is not None]:
            if not worker.ready:
                worker.check()
            self._bury(worker)
        for fault in self._healings:
            fault.look()
        self._stage.desk.tell(self._story())

    def _aim(self) -> None:
        """Kill the busiest worker as soon as one is busy, so that there is something to heal."""
        ready = [worker for worker in self._stage.workers if worker.ready]
        busy = {worker: len(healing.in_hand(worker.pid)) for worker in ready}
        if any(busy.values()) or time.monotonic() > self._aiming:
            self._aiming = 0.0
            if busy:
                self._bury(max(busy, key=busy.__getitem__))

    def _bury(self, worker: Program) -> None:
        """Whether it still runs or was killed from elsewhere."""
        self._stage.kill(worker)
        fault = healing.of_worker(self._number(), worker.pid, healing.in_hand(worker.pid), self._stage.leased)
        self._add(fault)
        fault.successor = self._stage.start_worker().pid

    def _flush(self) -> None:
        if self._stage.own_redis:
            self._add(healing.of_redis(self._number(), self._stage.flush()))

    def _number(self) -> int:
        self._faults += 1
        return self._faults

    def _add(self, fault: Healing) -> None:
        self._healings = [*self._healings, fault][-TOLD:]

    def _story(self) -> dict[str, Any]:
        return {
            "own_redis": self._stage.own_redis,
            "workers": [{"pid": worker.pid, "ready": worker.ready} for worker in self._stage.workers],
            "faults": [fault.told() for fault in reversed(self._healings)],
        }
