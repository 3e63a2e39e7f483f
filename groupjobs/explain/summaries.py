"""Queues and their workers as a whole: counts of rows, what Redis answers, what each worker has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models.functions import Now

from groupjobs import conf, ledger
from groupjobs.explain.counting import Counted, counted, live_of
from groupjobs.explain.facts import QueueFacts
from groupjobs.explain.queues import queues_facts
from groupjobs.lifecycle import READY, RUNNING
from groupjobs.store import replies

COUNTED: Final = 10_000
RUNS: Final = 50  # current runs of a queue that are listed
PAYLOAD: Final = ("args", "kwargs", "result", "error", "labels")


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """A worker of a queue; seconds since its last beat and its last served step (None: none yet).

    `alive` compares the beat with the TTL. `slots` 0: it lives, and serves no queue. `runs`: what it runs now.
    """

    name: str
    alive: bool
    leaving: bool
    slots: int
    beat: float
    served: float | None
    consumers: tuple[replies.ConsumerState, ...] = ()
    runs: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """A queue: `waiting` and `running` count rows; `runs` are the first that run, each with the database's `now`."""

    facts: QueueFacts
    waiting: Counted
    running: Counted
    runs: Sequence[Any] = ()
    workers: Sequence[WorkerFacts] = field(default_factory=list)


def summaries() -> list[Summary]:
    """All queues of the settings, and those that only rows still name."""
    names = sorted({*conf.current().queues, *ledger.queues_with_live_runs()})
    return [summary(facts) for facts in queues_facts(names).values()]


def summary(facts: QueueFacts) -> Summary:
    """One queue; where Redis is down its part is left out."""
    rows = live_of(facts.name)
    running = rows.filter(status=RUNNING).defer(*PAYLOAD).annotate(now=Now()).select_related("progress")
    runs = list(running.order_by("pk")[: RUNS + 1])
    return Summary(
        facts=facts,
        waiting=counted(rows.filter(status=READY), COUNTED),
        running=Counted(min(len(runs), RUNS), len(runs) > RUNS),
        runs=runs[:RUNS],
        workers=_workers(facts, runs[:RUNS]),
    )


def _workers(facts: QueueFacts, runs: Sequence[Any]) -> list[WorkerFacts]:
    told = facts.overview
    if told is None:
        return []
    return [
        WorkerFacts(
            worker.worker,
            worker.beat_age_ms <= 1000 * facts.ttl,
            worker.leaving,
            worker.slots,
            worker.beat_age_ms / 1000,
            None if worker.served_age_ms is None else worker.served_age_ms / 1000,
            tuple(consumer for consumer in told.consumers if consumer.worker == worker.worker),
            [run for run in runs if run.worker == worker.worker],
        )
        for worker in sorted(told.workers)
    ]
