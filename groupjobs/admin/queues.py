"""The page of queues and workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from groupjobs.admin.charts import Chart, bars, polylines
from groupjobs.explain import QueueFacts, Summary, WorkerFacts, duration, summaries, traffic
from groupjobs.store import replies


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
    runs: Sequence[Any]


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Everything that is shown of a queue."""

    facts: QueueFacts
    waiting: str = "0"
    running: str = "0"
    overview: replies.Overview | None = None
    workers: list[WorkerLine] = field(default_factory=list)
    throughput: Chart | None = None
    latency: Chart | None = None


def queue_pages() -> list[QueuePage]:
    """All queues of the settings, and those that only rows still name."""
    hour = traffic.last_hour()
    return [queue_page(found, hour.get(found.facts.name, [])) for found in summaries()]


def queue_page(found: Summary, hour: Sequence[traffic.Minute]) -> QueuePage:
    """One queue; Redis that is down leaves its part out."""
    return QueuePage(
        facts=found.facts,
        waiting=str(found.waiting),
        running=str(found.running),
        overview=found.facts.overview,
        workers=[_line(worker) for worker in found.workers],
        throughput=throughput(hour),
        latency=latency(hour),
    )


def _line(worker: WorkerFacts) -> WorkerLine:
    return WorkerLine(
        worker.name,
        worker.alive,
        worker.leaving,
        worker.slots,
        duration(worker.beat),
        duration(worker.served),
        [(c.nonce, c.pid, duration(c.seen_age_ms / 1000), c.leases) for c in worker.consumers],
        worker.runs,
    )


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
