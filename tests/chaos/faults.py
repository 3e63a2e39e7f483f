"""All faults with their weights, and a seeded schedule of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

from tests.chaos import hurts, outages
from tests.chaos.chaos import Chaos
from tests.chaos.plan import Plan

Fault = Callable[[Chaos], str]

FAULTS: dict[Fault, int] = {
    hurts.kill_child: 12,
    hurts.kill_main: 9,
    hurts.kill_watchdog: 5,
    hurts.kill_both: 4,
    hurts.stop_child: 4,
    hurts.stop_main: 3,
    hurts.stop_watchdog: 3,
    hurts.stop_worker: 4,
    hurts.deploy: 4,
    hurts.kill_producer: 4,
    outages.valkey_restart: 5,
    outages.valkey_silent: 3,
    outages.flush_all: 5,
    outages.script_flush: 3,
    outages.postgres_restart: 4,
    outages.postgres_crash: 4,
    outages.broker_down: 4,
    outages.bells_doubled: 4,
    outages.bells_dropped: 4,
    outages.recover_twice: 5,
}
NAMES = [fault.__name__ for fault in FAULTS]


def chosen(plan: Plan) -> dict[Fault, int]:
    """The faults of a plan."""
    return {fault: weight for fault, weight in FAULTS.items() if not plan.only or fault.__name__ in plan.only}


def schedule(plan: Plan) -> Iterator[tuple[float, Fault]]:
    """Seconds from the start and what happens then; every kind comes once before any comes often."""
    rng = random.Random(f"{plan.seed} schedule")
    table = chosen(plan)
    moments = sorted(rng.uniform(0.05, 0.95) * plan.seconds for _ in range(plan.faults))
    kinds = rng.sample(list(table), min(len(table), plan.faults))
    kinds += rng.choices(list(table), list(table.values()), k=plan.faults - len(kinds))
    rng.shuffle(kinds)
    yield from zip(moments, kinds, strict=True)


class Trouble:
    """Lets the scheduled faults happen and counts them."""

    def __init__(self, chaos: Chaos) -> None:
        self.chaos = chaos
        self.counts: Counter[str] = Counter()

    def prepare(self) -> None:
        """Put the schedule on the agenda."""
        for seconds, fault in schedule(self.chaos.plan):
            self.chaos.later(seconds, lambda fault=fault: self.strike(fault))  # type: ignore[misc]

    def strike(self, fault: Fault) -> None:
        """This fault, or another one when it is not possible now."""
        table = chosen(self.chaos.plan)
        for attempt in [fault, *self.chaos.rng.choices(list(table), list(table.values()), k=5)]:
            what = attempt(self.chaos)
            if what:
                self.counts[attempt.__name__] += 1
                self.chaos.say(f"{attempt.__name__}: {what}")
                return
