"""What `groupjobs_status` knows, as plain data: the facts of the admin's pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from groupjobs import conf, ledger, reports
from groupjobs.explain import (
    GroupState,
    Summary,
    WorkerFacts,
    explained,
    line_of,
    listed,
    mend_text,
    summaries,
    traffic,
)
from groupjobs.explain.drift import Look, look
from groupjobs.explain.listing import named
from groupjobs.ledger import conditions
from groupjobs.models import JobRun

GROUPS: Final = 25
DRIFT: Final = 1.0  # seconds that one look at all queues may take
COUNTED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that is shown. `looks` is what recovery would do; `more`: there are further groups."""

    queues: list[Summary] = field(default_factory=list)
    groups: list[GroupState] = field(default_factory=list)
    hour: dict[str, list[traffic.Minute]] = field(default_factory=dict)
    looks: dict[str, Look] = field(default_factory=dict)
    unreported: int = 0
    parked: int = 0
    more: bool = False


def status(queue: str) -> Status:
    """The state of one queue, or with '' of all, and of their oldest groups."""
    found = [known for known in summaries() if queue in ("", known.facts.name)]
    names = [known.facts.name for known in found]
    page = listed("oldest", names, "", GROUPS)
    waiting = reports_waiting(names)
    up = [known.facts.name for known in found if known.facts.overview is not None]
    return Status(
        queues=found,
        groups=explained(page.found, {known.facts.name: known.facts for known in found}),
        hour=traffic.last_hour(),
        looks={name: look(name, DRIFT / len(up)) for name in up},
        unreported=len(waiting),
        parked=sum(attempts >= reports.PARKED for attempts in waiting),
        more=bool(page.more),
    )


def reports_waiting(queues: Sequence[str]) -> list[int]:
    """How often each abandonment that is not reported was tried; at most a thousand."""
    rows = conditions.unreported(JobRun.objects.using(ledger.alias())).filter(queue__in=queues)
    return list(rows.order_by("report_after", "pk").values_list("report_attempts", flat=True)[:COUNTED])


def status_of_group(queue: str, group: str) -> Status:
    """One group, in each queue that has it; a group that nobody waits in is idle in every queue."""
    queues = [queue] if queue else sorted({*conf.current().queues, *ledger.queues_with_live_runs()})
    found = named(queues, group) or [(name, group, 0) for name in queues if name in conf.current().queues]
    return Status(groups=explained(found))


def plain(known: Status) -> dict[str, Any]:
    """As JSON-ready data; durations are seconds, moments are ISO texts, words of states are stable."""
    return {
        "queues": [_queue(summary, known) for summary in known.queues],
        "workers": [_worker(s.facts.name, worker) for s in known.queues for worker in s.workers],
        "groups": [plain_group(group) for group in known.groups],
        "more_groups": known.more,
        "unreported": known.unreported,
        "parked": known.parked,
    }


def _queue(summary: Summary, known: Status) -> dict[str, Any]:
    facts, told = summary.facts, summary.facts.overview
    found = known.looks.get(facts.name)
    return {
        "queue": facts.name,
        "state": facts.state,
        "problem": facts.problem,
        "celery_queue": facts.celery_queue,
        "paused_by": facts.pause.by if facts.pause else "",
        "pause_reason": facts.pause.reason if facts.pause else "",
        "waiting": summary.waiting.number,
        "waiting_more": summary.waiting.more,
        "running": summary.running.number,
        "groups_ready": told.ready if told else None,
        "groups_later": told.later if told else None,
        "groups_held": told.held_groups if told else None,
        "scheduled": told.scheduled if told else None,
        "workers": facts.workers,
        "workers_elsewhere": facts.elsewhere,
        "consumers": facts.consumers,
        "oldest_ready": seconds(told.ready_age_ms) if told else None,
        "last_sweep": seconds(told.sweep_age_ms) if told else None,
        "counters": dict(told.stats) if told else {},
        "last_hour": last_hour(known.hour.get(facts.name, [])),
        "drift": dict(found.counts) if found else {},
        "drift_whole": found.whole if found else False,
    }


def seconds(milliseconds: int | None) -> float | None:
    """Milliseconds as seconds; None stays None."""
    return None if milliseconds is None else milliseconds / 1000


def last_hour(minutes: Sequence[traffic.Minute]) -> dict[str, Any]:
    """Runs that ended, and the median and slow wait of its slowest minute."""
    middles = [minute.middle for minute in minutes if minute.middle is not None]
    slows = [minute.slow for minute in minutes if minute.slow is not None]
    return {
        "succeeded": round(sum(minute.succeeded for minute in minutes)),
        "others": round(sum(minute.others for minute in minutes)),
        "wait_p50": max(middles, default=None),
        "wait_p95": max(slows, default=None),
    }


def _worker(queue: str, worker: WorkerFacts) -> dict[str, Any]:
    return {
        "queue": queue,
        "worker": worker.name,
        "alive": worker.alive,
        "leaving": worker.leaving,
        "slots": worker.slots,
        "beat": worker.beat,
        "served": worker.served,
        "consumers": [
            {"consumer": c.nonce, "pid": c.pid, "seen": c.seen_age_ms / 1000, "leases": c.leases}
            for c in worker.consumers
        ],
        "runs": [run.pk for run in worker.runs],
    }


def plain_group(known: GroupState) -> dict[str, Any]:
    """A group, its head and its state."""
    state, backlog = known.state, known.backlog()
    return {
        "queue": known.queue,
        "group": known.group,
        "run": known.run,
        "state": state.word,
        "reason": state.reason,
        "since": _moment(state.since),
        "until": _moment(state.until),
        "mend": state.mend,
        "press": mend_text(state.mend),
        "backlog": backlog.number,
        "backlog_more": backlog.more,
        "age": known.age,
        "head": _head(known),
        "holder": known.holder,
        "beat": known.beat,
        "line": [run.pk for run in line_of(known.queue, known.group, known.run)],
    }


def _head(known: GroupState) -> dict[str, Any] | None:
    head = known.facts.head
    if head is None:
        return None
    return {
        "run": head.id,
        "job": head.job,
        "status": head.status,
        "attempts": head.attempts,
        "max_attempts": head.max_attempts,
        "enqueued_at": _moment(head.enqueued_at),
        "run_after": _moment(head.run_after),
    }


def _moment(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()
