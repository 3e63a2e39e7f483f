"""How much of everything a chaos run has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """`only`: names of the faults to choose from, all when empty. `ttl`: WORKER_TTL in seconds."""

    runs: int
    seconds: float
    seed: int
    faults: int
    groups: int
    poison: int
    workers: int
    concurrency: int
    ttl: float
    only: Sequence[str] = ()

    @property
    def heavy(self) -> float:
        """Share of runs that take their time: as large as the fleet can work off easily."""
        budget = 0.15 * self.workers * self.concurrency * self.seconds * 1000 / self.runs  # ms a run
        return max(0.0, min(0.1, (budget - 2) / 430))
