"""What a scrape answers: counters that Redis keeps, and gauges read then, with bounded work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

from groupjobs import conf, ledger, reports
from groupjobs.explain import QueueFacts, queues_facts
from groupjobs.explain.counting import counted, live_of
from groupjobs.ledger import conditions
from groupjobs.lifecycle import READY, RUNNING
from groupjobs.metrics.counting import MILLISECONDS, RUN
from groupjobs.models import JobRun

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.exposition import CONTENT_TYPE_LATEST
    from prometheus_client.metrics_core import Metric
except ImportError as error:
    raise ImproperlyConfigured(
        "The metrics of groupjobs need the package prometheus-client: install groupjobs[prometheus]."
    ) from error

OUTCOMES: Final = ("reserved", "done", "retry", "back", "lost", "healed")
MOST: Final = 10_000  # rows of a kind that a scrape counts at most
CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


class GroupJobsCollector:
    """A collector for any registry of prometheus_client: `REGISTRY.register(GroupJobsCollector())`."""

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask a server."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One look into Redis and four bounded queries for each queue of the settings."""
        facts = list(queues_facts(conf.current().queues).values())
        yield from _counters(facts)
        yield from _of_redis(facts)
        yield from _of_workers(facts)
        yield from _of_rows([known.name for known in facts])


def exposition() -> bytes:
    """The metrics of groupjobs alone, as text for Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(GroupJobsCollector())
    return generate_latest(registry)


def _counters(facts: Iterable[QueueFacts]) -> Iterator[Metric]:
    leases = CounterMetricFamily(
        "groupjobs_leases", "Reservations, and how they ended, since Redis has its memory.", labels=("queue", "outcome")
    )
    runs = CounterMetricFamily(
        "groupjobs_runs", "What became of runs and attempts, by job.", labels=("queue", "job", "status")
    )
    seconds = CounterMetricFamily("groupjobs_run_seconds", "Time spent in handlers.", labels=("queue", "job"))
    for known in facts:
        stats = known.overview.stats if known.overview else {}
        for outcome in OUTCOMES:
            leases.add_metric((known.name, outcome), stats.get(outcome, 0))
        for name, number in stats.items():
            kind, _, rest = name.partition(" ")
            if kind == RUN:
                status, _, job = rest.partition(" ")
                runs.add_metric((known.name, job, status), number)
            elif kind == MILLISECONDS:
                seconds.add_metric((known.name, rest), number / 1000)
    return iter((leases, runs, seconds))


def _of_redis(facts: Iterable[QueueFacts]) -> Iterator[Metric]:
    up = _gauge("groupjobs_up", "Whether the queue's Redis runs scripts and its memory is whole.")
    paused = _gauge("groupjobs_paused", "Whether the queue is paused.")
    found = {
        "ready": _gauge("groupjobs_ready_groups", "Groups that can be served now."),
        "later": _gauge("groupjobs_later_groups", "Groups that wait for a time: back-off, rate."),
        "scheduled": _gauge("groupjobs_scheduled_runs", "Runs that are not due and block nobody."),
        "held_groups": _gauge("groupjobs_held_groups", "Groups that somebody holds."),
    }
    waits = _gauge("groupjobs_ready_age_seconds", "How long the group that is served next has been ready.")
    sweep = _gauge("groupjobs_sweep_age_seconds", "Since a full sweep has ended.")
    for known in facts:
        told, label = known.overview, (known.name,)
        up.add_metric(label, known.state in ("open", "paused"))
        paused.add_metric(label, known.pause is not None)
        if told is None:
            continue
        for name, gauge in found.items():
            gauge.add_metric(label, getattr(told, name))
        waits.add_metric(label, (told.ready_age_ms or 0) / 1000)
        if told.sweep_age_ms is not None:
            sweep.add_metric(label, told.sweep_age_ms / 1000)
    return iter((up, paused, *found.values(), waits, sweep))


def _of_workers(facts: Iterable[QueueFacts]) -> Iterator[Metric]:
    workers = _gauge("groupjobs_workers", "Workers that live and serve the queue.")
    slots = _gauge("groupjobs_slots", "Runs that they can execute at once.")
    consumers = _gauge("groupjobs_consumers", "Consumers that serve groups now.")
    beat = _gauge("groupjobs_oldest_beat_seconds", "Since the last beat of the most silent worker.")
    served = _gauge("groupjobs_served_age_seconds", "Since any worker was handed a run.")
    for known in facts:
        told, label = known.overview, (known.name,)
        if told is None:
            continue
        serving = [worker for worker in told.workers if worker.slots and not worker.leaving]
        ages = [worker.served_age_ms for worker in told.workers if worker.served_age_ms is not None]
        workers.add_metric(label, known.workers)
        slots.add_metric(label, sum(worker.slots for worker in serving))
        consumers.add_metric(label, len(told.consumers))
        beat.add_metric(label, max((worker.beat_age_ms for worker in serving), default=0) / 1000)
        if ages:
            served.add_metric(label, min(ages) / 1000)
    return iter((workers, slots, consumers, beat, served))


def _of_rows(queues: Iterable[str]) -> Iterator[Metric]:
    live = _gauge("groupjobs_live_runs", f"Live runs by status, counted up to {MOST}.", "status")
    unpublished = _gauge("groupjobs_unpublished_runs", f"Runs that Redis was not told of, counted up to {MOST}.")
    unreported = _gauge("groupjobs_unreported_abandonments", f"Abandonments not reported, counted up to {MOST}.")
    parked = _gauge("groupjobs_parked_abandonments", "Those of them whose report waits for a person.")
    for queue in queues:
        rows = JobRun.objects.using(ledger.alias()).filter(queue=queue)
        live.add_metric((queue, READY), counted(conditions.ready(live_of(queue)), MOST).number)
        live.add_metric((queue, RUNNING), counted(conditions.running(rows), MOST).number)
        unpublished.add_metric((queue,), counted(rows.filter(unpublished=True), MOST).number)
        waiting = conditions.unreported(rows).order_by("report_after", "pk")
        tries = list(waiting.values_list("report_attempts", flat=True)[:MOST])
        unreported.add_metric((queue,), len(tries))
        parked.add_metric((queue,), sum(number >= reports.PARKED for number in tries))
    return iter((live, unpublished, unreported, parked))


def _gauge(name: str, said: str, *labels: str) -> Any:
    return GaugeMetricFamily(name, said, labels=("queue", *labels))
