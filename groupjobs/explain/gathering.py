"""Gather the facts about groups: their heads and holds from rows, then what Redis says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import Q
from django.db.models.functions import Now

from groupjobs import ledger, registry, reports
from groupjobs.explain.ages import seconds_between
from groupjobs.explain.facts import GroupFacts, LimitFacts, QueueFacts, ReportFacts, RunFacts
from groupjobs.explain.queues import REDIS_ERRORS, hold_of, queue_facts
from groupjobs.ledger import conditions
from groupjobs.lifecycle import RUNNING
from groupjobs.models import JobAttempt, JobGroup, JobRun
from groupjobs.store import replies, store_for
from groupjobs.store.keys import line_name

NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)  # the time where no row tells it, and nothing depends on it
PAGE: Final = 250  # groups of one look into Redis

Place = tuple[str, int]  # a group, and for '' the run that is a group of its own (else 0)


def facts_of(queue: str, places: Sequence[Place], told: QueueFacts | None = None) -> list[GroupFacts]:
    """The facts about these groups of a queue, in the same order. One or two queries a group, one look into Redis."""
    told = told or queue_facts(queue)
    heads = [_head(queue, group, run) for group, run in places]
    holds, unreported = _holds(queue, places), _unreported(queue, places)
    now = next((row.now for row in [*heads, *holds.values(), *unreported.values()] if row is not None), NEVER)
    failures = _failures([head.pk for head in heads if head is not None and head.failures])
    facts = []
    for (group, run), head in zip(places, heads, strict=True):
        row, report = holds.get(group), unreported.get((group, run))
        made = GroupFacts(
            queue=told,
            group=group,
            now=now,
            head=None if head is None else _run_facts(head, now, failures),
            hold=hold_of(row),
            limited=told.limited or bool(row and row.rate_count),
            unreported=None if report is None else _report_facts(report),
            limits=_limits(row),
        )
        facts.append(made)
    return _with_redis(queue, places, facts)


def facts_of_run(run: JobRun) -> GroupFacts:
    """The facts about the group of one run."""
    return facts_of(run.queue, [(run.group, 0 if run.group else run.pk)])[0]


def _head(queue: str, group: str, run: int) -> Any:
    """The run that the group waits for: the first live one that does not let others pass until its time."""
    live = conditions.live(JobRun.objects.using(ledger.alias()).filter(queue=queue, group=group))
    live = live.filter(pk=run) if not group else live
    line = live.defer(*_PAYLOAD).select_related("progress").annotate(now=Now()).order_by("order", "pk")
    head = line.first()
    if head is not None and head.yields and head.run_after is not None and head.run_after > head.now:
        blocks = Q(yields=False) | Q(run_after=None) | Q(run_after__lte=Now())
        return line.filter(blocks).first() or line.order_by("run_after", "pk").first()
    return head


_PAYLOAD: Final = ("args", "kwargs", "result", "error", "labels")


def _holds(queue: str, places: Sequence[Place]) -> dict[str, Any]:
    names = [group for group, _run in places if group]
    rows = JobGroup.objects.using(ledger.alias()).filter(queue=queue, group__in=names)
    return {row.group: row for row in rows.annotate(now=Now())}


def _failures(runs: Sequence[int]) -> dict[int, str]:
    rows = JobAttempt.objects.using(ledger.alias()).filter(run_id__in=runs, outcome="failed").order_by("id")
    return {run: name.rpartition(".")[2] for run, name in rows.values_list("run_id", "error_class")}


def _unreported(queue: str, places: Sequence[Place]) -> dict[Place, Any]:
    """The oldest unreported abandonment of each place."""
    named, alone = {group for group, _run in places if group}, {run for group, run in places if not group}
    rows = conditions.unreported(JobRun.objects.using(ledger.alias()).filter(queue=queue))
    rows = rows.filter(Q(group__in=named) | Q(group="", pk__in=alone)).defer(*_PAYLOAD).annotate(now=Now())
    found = sorted(rows.order_by("report_after", "pk"), key=lambda run: -run.pk)  # read in the order of the index
    return {(run.group, 0 if run.group else run.pk): run for run in found}


def _report_facts(run: JobRun) -> ReportFacts:
    parked = run.report_attempts >= reports.PARKED
    return ReportFacts(run.pk, run.reason, run.report_attempts, parked, run.report_after)


def _limits(row: JobGroup | None) -> LimitFacts | None:
    if row is None or (row.group_concurrency is None and row.rate_count is None):
        return None
    rate = (row.rate_count, row.rate_seconds) if row.rate_count and row.rate_seconds else None
    return LimitFacts(row.group_concurrency, rate)


def _run_facts(run: Any, now: datetime, failures: dict[int, str]) -> RunFacts:
    reported = getattr(getattr(run, "progress", None), "updated_at", None)
    if reported is not None and run.last_attempted_at is not None:
        reported = max(reported, run.last_attempted_at)  # an earlier attempt's word says nothing of this one
    return RunFacts(
        id=run.pk,
        job=run.job,
        status=run.status,
        enqueued_at=run.enqueued_at,
        attempts=run.attempts,
        failures=run.failures,
        max_attempts=run.max_attempts,
        begun_at=run.last_attempted_at,
        run_after=run.run_after,
        yields=run.yields,
        unpublished=run.unpublished,
        cancel_requested=run.cancel_requested_at is not None,
        worker=run.worker if run.status == RUNNING else "",
        failure=failures.get(run.pk, ""),
        known=registry.resolve(run.job) is not None,
        quiet=seconds_between(reported, now) if run.status == RUNNING else None,
    )


def _with_redis(queue: str, places: Sequence[Place], facts: list[GroupFacts]) -> list[GroupFacts]:
    if facts and facts[0].queue.state not in ("open", "paused"):
        return facts
    answered: list[GroupFacts] = []
    for start in range(0, len(facts), PAGE):
        page = facts[start : start + PAGE]
        asked = [
            (known.head.id if known.head else run, line_name(group, run))
            for known, (group, run) in zip(page, places[start:], strict=False)
        ]
        try:
            snapshot = store_for(queue, "look").snapshot(asked)
        except REDIS_ERRORS as error:
            down = replace(facts[0].queue, state="down", problem=str(error))
            return [replace(known, queue=down) for known in facts]
        answered += [_placed(known, name, snapshot) for known, (_run, name) in zip(page, asked, strict=True)]
    return answered


def _placed(facts: GroupFacts, name: str, snapshot: replies.Snapshot) -> GroupFacts:
    group = snapshot.groups.get(name)
    entry = snapshot.entries.get(facts.head.id) if facts.head else None
    head = facts.head
    if head is not None and entry is not None:
        worker = entry.worker or head.worker
        head = replace(head, place=entry.place, ghost=entry.ghost, silent=entry.silent, worker=worker)
    if group is None:
        return replace(facts, head=head)
    later = None if group.later_ms is None else group.later_ms / 1000
    return replace(facts, head=head, ready=group.ready, later=later, held=len(group.held), strays=len(group.strays))
