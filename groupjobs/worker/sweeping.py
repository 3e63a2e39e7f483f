"""When to ask for a sweep of a queue: each worker's tick asks, one of them is granted it."""

from __future__ import annotations

import time
from typing import Final

from groupjobs.store import Store
from groupjobs.store.replies import TickReply

QUICK: Final = 5.0  # seconds between two quick sweeps of a queue
REBUILD: Final = 1.0  # seconds between two looks at a rebuild that waits for the living
GRANTED: Final = 0.9  # of the interval: so that the one who asks every interval finds its last grant expired


class Sweeps:
    """The sweeps of one queue, as far as this worker asks for them. Raises what the Redis client raises."""

    def __init__(self, interval: float) -> None:
        self._intervals = {"full": interval, "quick": QUICK}
        self._due: dict[str, float] = {}

    def wanted(self, reply: TickReply, store: Store) -> list[str]:
        """The kinds of sweep to send now, given what a tick said."""
        if reply.state == "rebuild":
            return ["rebuild"] if self._granted("rebuild", REBUILD, store) else []
        if reply.state not in ("open", "paused"):
            return []
        return [kind for kind, interval in self._intervals.items() if self._granted(kind, interval, store)]

    def _granted(self, kind: str, interval: float, store: Store) -> bool:
        """A worker's first full sweep needs no grant: what its predecessor left behind is looked for at once."""
        now, first = time.monotonic(), kind == "full" and kind not in self._due
        if now < self._due.get(kind, 0.0):
            return False
        self._due[kind] = now + interval
        return store.turn(f"ask-{kind}", interval * GRANTED) or first
