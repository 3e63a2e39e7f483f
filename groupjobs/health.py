"""Health: whether jobs are being served, as a verdict over facts that were really asked for.

A green PING proves nothing: each queue answers a script, steps have to be served while something waits, and the
sweep has to come round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import Error as DatabaseError

from groupjobs import conf, ledger, reports
from groupjobs.explain import QueueFacts, duration, queues_facts
from groupjobs.ledger import conditions
from groupjobs.store import replies

UNSERVED: Final = 30.0  # seconds that a ready group may wait while a worker has a free slot
SPEECHLESS: Final = 60.0  # seconds that a consumer may hold leases without a word
SWEEPS: Final = 3  # intervals that may pass without a full sweep
TRIED: Final = 3  # failed reports of an abandonment after which it counts as a problem
COUNTED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Backlog:
    """What rows alone tell: how often each unreported abandonment was tried, and live runs not published (bounded)."""

    report_attempts: tuple[int, ...] = ()
    unpublished: int = 0


@dataclass(frozen=True, slots=True)
class Health:
    """`problems` in words, none when `ok`; `queues` the facts about each as JSON-ready data, without secrets."""

    problems: tuple[str, ...] = ()
    queues: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def check() -> Health:
    """Ask Redis and the database, in a second or two even when Redis is silent, and judge what they say."""
    settings = conf.current()
    try:
        facts = list(queues_facts(settings.queues).values())
        backlog = read_backlog(list(settings.queues))
    except DatabaseError as error:
        return Health((f"The database does not answer ({type(error).__name__}).",))
    return Health(tuple(judge(facts, backlog, settings.sweep_interval)), {f.name: _plain(f) for f in facts})


def read_backlog(queues: list[str]) -> Backlog:
    """Read what rows alone tell, at most a thousand of each kind."""
    from groupjobs.models import JobRun

    rows = JobRun.objects.using(ledger.alias()).filter(queue__in=queues)
    waiting = conditions.unreported(rows).order_by("report_after", "pk")
    flagged = rows.filter(unpublished=True).values_list("pk")[:COUNTED]
    return Backlog(tuple(waiting.values_list("report_attempts", flat=True)[:COUNTED]), len(flagged))


def judge(queues: Iterable[QueueFacts], backlog: Backlog, sweep_interval: float) -> Iterator[str]:
    """What is wrong, in words. Pure."""
    down = False
    for facts in queues:
        down |= facts.overview is None
        yield from _queue(facts, sweep_interval)
    parked = sum(attempts >= reports.PARKED for attempts in backlog.report_attempts)
    failing = sum(TRIED <= attempts < reports.PARKED for attempts in backlog.report_attempts)
    if parked:
        yield f"{parked} abandonments could not be reported and wait for a person."
    if failing:
        yield f"{failing} abandonments could not be reported yet."
    if backlog.unpublished and not down:
        yield f"{backlog.unpublished} runs are not published to Redis."


def _queue(facts: QueueFacts, sweep_interval: float) -> Iterator[str]:
    told, name = facts.overview, facts.name
    if facts.state == "format":
        yield f"Queue {name}: a newer release of groupjobs made its keys."
    elif told is None:
        yield f"Queue {name}: Redis runs no script."
    elif not facts.opened:
        yield f"Queue {name}: no worker has served it yet."
    elif facts.state == "rebuild":
        yield f"Queue {name}: Redis lost its memory {duration(facts.rebuilding)} ago; it is being rebuilt."
    else:
        yield from _workers(facts, told)
        yield from _sweep(name, told, sweep_interval)


def _workers(facts: QueueFacts, told: replies.Overview) -> Iterator[str]:
    waits = (told.ready_age_ms or 0) / 1000
    waiting = told.ready + told.later + told.scheduled
    if waiting and not facts.workers and not told.paused:
        yield f"Queue {facts.name}: something waits, and no worker serves it."
    for worker in told.workers:
        if worker.leaving or not worker.slots:
            continue
        if worker.beat_age_ms > 500 * facts.ttl:
            age = duration(worker.beat_age_ms / 1000)
            yield f"Queue {facts.name}: worker {worker.worker} was last heard of {age} ago."
        elif waits > UNSERVED and not told.paused and _idle(worker, told):
            served = duration(_seconds(worker.served_age_ms))
            yield (
                f"Queue {facts.name}: worker {worker.worker} has a free slot, but serves nothing (last served step "
                f"{served} ago), while a group has waited for {duration(waits)}."
            )
    for consumer in told.consumers:
        if consumer.leases and consumer.seen_age_ms > 1000 * SPEECHLESS:
            age = duration(consumer.seen_age_ms / 1000)
            yield (
                f"Queue {facts.name}: a consumer of worker {consumer.worker} (pid {consumer.pid}) holds runs, and was "
                f"last heard of {age} ago."
            )


def _idle(worker: replies.WorkerState, told: replies.Overview) -> bool:
    """Whether it has a slot without a consumer at work, and was not served lately."""
    busy = sum(c.worker == worker.worker and c.leases > 0 for c in told.consumers)
    return busy < worker.slots and (worker.served_age_ms is None or worker.served_age_ms > 1000 * UNSERVED)


def _sweep(name: str, told: replies.Overview, interval: float) -> Iterator[str]:
    serving = any(worker.slots and not worker.leaving for worker in told.workers)
    age = told.epoch_age_ms if told.sweep_age_ms is None else told.sweep_age_ms
    if serving and age > 1000 * SWEEPS * interval:
        yield f"Queue {name}: no full sweep has ended for {duration(age / 1000)}."


def _plain(facts: QueueFacts) -> dict[str, Any]:
    told = facts.overview
    if told is None:
        return {"state": facts.state}
    return {
        "state": facts.state,
        "workers": [
            {
                "worker": worker.worker,
                "beat_age": worker.beat_age_ms / 1000,
                "served_age": _seconds(worker.served_age_ms),
                "slots": worker.slots,
                "leaving": worker.leaving,
            }
            for worker in told.workers
        ],
        "consumers": len(told.consumers),
        "ready": told.ready,
        "ready_age": _seconds(told.ready_age_ms),
        "sweep_age": _seconds(told.sweep_age_ms),
    }


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
