"""What Redis says of queues and their workers, and who paused them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from redis.exceptions import RedisError

from groupjobs import bell, conf, ledger
from groupjobs.explain.facts import HoldFacts, QueueFacts
from groupjobs.models import JobGroup
from groupjobs.store import replies, store_for

REDIS_ERRORS: Final = (RedisError, replies.StoreError, OSError)
Told = replies.Overview | Exception


def queue_facts(queue: str) -> QueueFacts:
    """What Redis says of a queue, and who paused it. Redis that is down is a fact, not an error."""
    return queues_facts([queue])[queue]


def queues_facts(queues: Iterable[str]) -> dict[str, QueueFacts]:
    """The facts about these queues by name: one look into Redis a queue of the settings, none after one that failed."""
    names = list(queues)
    told = _look(conf.current().queues)
    return {name: _facts(name, told) for name in names}


def _look(queues: Iterable[str]) -> dict[str, Told]:
    """The overview of each queue, or what its Redis answered instead; a server that is down is asked once."""
    told: dict[str, Told] = {}
    down: Exception | None = None
    for name in queues:
        try:
            told[name] = down or store_for(name, "look").overview()
        except replies.NewerFormat as error:
            told[name] = error
        except REDIS_ERRORS as error:
            told[name] = down = error
    return told


def _facts(queue: str, told: Mapping[str, Told]) -> QueueFacts:
    settings = conf.current()
    options = settings.queues.get(queue)
    row = ledger.group_row(queue, "")
    facts = QueueFacts(
        queue,
        "down",
        settings.worker_ttl,
        settings.unknown_job_grace,
        celery_queue=bell.celery_queue(queue),
        pause=hold_of(row),
        opened=row is not None,
        limited=options is not None and options.rate is not None,
    )
    match told.get(queue):
        case None:
            return replace(facts, state="unnamed")
        case replies.NewerFormat():
            return replace(facts, state="format")
        case Exception() as error:
            return replace(facts, problem=str(error) or type(error).__name__)
        case overview:
            return _with_overview(facts, overview, told)


def hold_of(row: JobGroup | None) -> HoldFacts | None:
    """The hold that a row says, if it says one."""
    return HoldFacts(row.by, row.reason, row.since) if row is not None and row.held else None


def _with_overview(facts: QueueFacts, overview: replies.Overview, told: Mapping[str, Told]) -> QueueFacts:
    here = serving(overview, facts.ttl)
    others = [other for other in told.values() if isinstance(other, replies.Overview)]
    elsewhere = {name for other in others for name in serving(other, facts.ttl)} | _bystanders(overview, facts.ttl)
    return replace(
        facts,
        state="paused" if overview.paused and overview.state == "open" else overview.state,
        rebuilding=overview.rebuilding_ms / 1000,
        workers=len(here),
        elsewhere=len(elsewhere - here),
        consumers=len(overview.consumers),
        ready=overview.ready,
        beats={worker.worker: worker.beat_age_ms / 1000 for worker in overview.workers},
        overview=overview,
    )


def serving(overview: replies.Overview, ttl: float) -> set[str]:
    """The workers that beat, have slots for the queue and do not shut down."""
    return {worker.worker for worker in overview.workers if _alive(worker, ttl) and worker.slots > 0}


def _bystanders(overview: replies.Overview, ttl: float) -> set[str]:
    """Workers that live and serve no queue at all."""
    return {worker.worker for worker in overview.workers if _alive(worker, ttl) and worker.slots == 0}


def _alive(worker: replies.WorkerState, ttl: float) -> bool:
    return not worker.leaving and worker.beat_age_ms <= 1000 * ttl
