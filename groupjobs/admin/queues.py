"""The page of queues and workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _

from groupjobs import conf, ledger
from groupjobs.admin import traffic
from groupjobs.admin.charts import Chart, bars, polylines
from groupjobs.admin.groups import counted
from groupjobs.explain import QueueFacts, duration, queue_facts, seconds_between
from groupjobs.explain.gathering import REDIS_ERRORS
from groupjobs.ledger.conditions import live
from groupjobs.lifecycle import RUNNING
from groupjobs.models import JobRun
from groupjobs.store import replies, store_for

COUNTED: Final = 10_000
RUNNING_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A worker of a queue; ages are text, `alive` compares its beat with the TTL."""

    name: str
    alive: bool
    leaving: bool
    slots: int
    beat: str
    served: str
    consumers: list[tuple[str, int, str, int]]  # nonce, pid, seen age, leases
    runs: list[Any]


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Everything that is shown of a queue."""

    facts: QueueFacts
    paused_for: str = ""
    waiting: str = "0"
    running: str = "0"
    overview: replies.Overview | None = None
    workers: list[WorkerLine] = field(default_factory=list)
    throughput: Chart | None = None
    latency: Chart | None = None


def queue_pages() -> list[QueuePage]:
    """All queues of the settings, and those that only rows still name."""
    names = sorted({*conf.current().queues, *ledger.queues_with_live_runs()})
    hour = traffic.last_hour()
    return [queue_page(name, hour.get(name, [])) for name in names]


def queue_page(queue: str, hour: Sequence[traffic.Minute]) -> QueuePage:
    """One queue; Redis that is down leaves its part out."""
    facts = queue_facts(queue)
    rows = live(JobRun.objects.using(ledger.alias()).filter(queue=queue))
    running = list(_running(rows))
    overview = _overview(queue, facts)
    return QueuePage(
        facts=facts,
        paused_for=_paused_for(facts, running),
        waiting=counted(rows.exclude(status=RUNNING), COUNTED),
        running=f"{RUNNING_SHOWN}+" if len(running) > RUNNING_SHOWN else str(len(running)),
        overview=overview,
        workers=_workers(overview, running[:RUNNING_SHOWN], facts.ttl) if overview else [],
        throughput=throughput(hour),
        latency=latency(hour),
    )


def _running(rows: Any) -> Any:
    from groupjobs.admin.detail import without_payload

    return without_payload(rows.filter(status=RUNNING)).select_related("progress").order_by("pk")[: RUNNING_SHOWN + 1]


def _overview(queue: str, facts: QueueFacts) -> replies.Overview | None:
    if facts.state in ("down", "format"):
        return None
    try:
        return store_for(queue).overview()
    except REDIS_ERRORS:
        return None


def _paused_for(facts: QueueFacts, running: Sequence[Any]) -> str:
    since = facts.pause.since if facts.pause else None
    return duration(seconds_between(since, running[0].now)) if since and running else ""


def _workers(overview: replies.Overview, running: Sequence[Any], ttl: float) -> list[WorkerLine]:
    return [
        WorkerLine(
            worker.worker,
            worker.beat_age_ms <= 1000 * ttl,
            worker.leaving,
            worker.slots,
            duration(worker.beat_age_ms / 1000),
            "-" if worker.served_age_ms is None else duration(worker.served_age_ms / 1000),
            [
                (consumer.nonce, consumer.pid, duration(consumer.seen_age_ms / 1000), consumer.leases)
                for consumer in overview.consumers
                if consumer.worker == worker.worker
            ],
            [run for run in running if run.worker == worker.worker],
        )
        for worker in sorted(overview.workers)
    ]


def throughput(hour: Sequence[traffic.Minute]) -> Chart | None:
    """Runs that ended in each minute; None when none did."""
    pairs = [(minute.succeeded, minute.others) for minute in hour]
    total, most = sum(map(sum, pairs)), max(map(sum, pairs), default=0.0)
    if not total:
        return None
    told = {"total": round(total), "most": round(most), "others": round(sum(other for _ok, other in pairs))}
    said = _("ended in the last hour: %(total)s, of them without success: %(others)s; at most %(most)s a minute")
    return Chart(f"{round(most)}", said % told, bars=bars(pairs))


def latency(hour: Sequence[traffic.Minute]) -> Chart | None:
    """Seconds from enqueue to the first attempt; None when nothing ended."""
    slow = [minute.slow for minute in hour]
    most = max((value for value in slow if value is not None), default=None)
    if most is None:
        return None
    middle = [minute.middle for minute in hour]
    said = _("wait until the first attempt: 95 of 100 runs waited at most %s") % duration(most)
    lines = (("slow", polylines(slow, most)), ("middle", polylines(middle, most)))
    return Chart(duration(most), said, lines=lines)
