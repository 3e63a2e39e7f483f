"""Commands that one worker sends to Redis while there is nothing that it could do."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any, Self

from bench.recovery.dead import opened, reserve
from bench.recovery.fleet import Fleet
from bench.world import wait
from project.embedded import EmbeddedValkey

SETTLE = 8.0  # seconds after its start in which a worker sweeps and connects


def commands(valkey: EmbeddedValkey, seconds: float) -> Counter[str]:
    """What clients, not scripts, send to the queue's database in so many seconds."""
    seen: Counter[str] = Counter()
    until = time.monotonic() + seconds
    listener: Any = valkey.client(timeout=seconds + 5)
    with listener.monitor() as monitor, valkey.client() as other:
        while time.monotonic() < until:
            other.ping()
            while (command := monitor.next_command())["command"] != "PING":
                if command["db"] == 0 and command["client_type"] != "lua":
                    seen[command["command"].split()[0]] += 1
            time.sleep(0.05)
    return seen


def idle(fleet: Fleet, valkey: EmbeddedValkey, seconds: float) -> Counter[str]:
    """One worker and an empty queue."""
    fleet.fill(1)
    time.sleep(SETTLE)
    return commands(valkey, seconds)


def blocked(fleet: Fleet, valkey: EmbeddedValkey, seconds: float, groups: int) -> Counter[str]:
    """One worker and so many groups: a third paused, a third backing off, the others held by another worker."""
    from bench.work import jobs

    third = groups // 3
    calls = [{"group": f"blocked-{number}"} for number in range(groups)]
    with Holder(third + groups % 3) as holder:
        jobs.named.enqueue_many(calls[2 * third :])
        opened()
        holder.take()
        _pause(calls[:third])
        jobs.named.enqueue_many(calls[:third])
        fleet.launch(1)
        jobs.later.enqueue_many(calls[third : 2 * third])
        wait(lambda: _backing_off() == third, "groups back off")
        time.sleep(SETTLE)
        before = holder.sent
        seen = commands(valkey, seconds)
        seen["EVALSHA"] -= holder.sent - before
    return seen


def _backing_off() -> int:
    from groupjobs.store import store_for

    return store_for("default").overview().later


def _pause(calls: list[dict[str, str]]) -> None:
    from groupjobs import moves

    for call in calls:
        moves.hold("default", call["group"], "benchmark")


class Holder:
    """A worker that lives, holds leases and does nothing else; `sent` counts its beats."""

    def __init__(self, leases: int) -> None:
        from groupjobs.store import store_for

        self.sent = 0
        self._store = store_for("default")
        self._leases = leases
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._listed: dict[str, int] = {}

    def take(self) -> None:
        """Take the leases and go on beating."""
        self._listed = reserve("holder:1:bench", 1, self._leases)
        self._thread.start()

    def _beat(self) -> None:
        while not self._over.wait(2.0):
            self._store.beat("holder:1:bench", 1, self._listed)
            self.sent += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._store.reap(worker="holder:1:bench")
