"""Everything that the page of one run shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import F, QuerySet, TextField
from django.db.models.functions import Cast, Now
from django.utils.translation import gettext as _

from groupjobs.admin.columns import progress_of, tries_text
from groupjobs.admin.payload import Shown, shown, shown_arguments
from groupjobs.admin.phrases import phrase
from groupjobs.explain import State, duration, explain_run, facts_of_run, reason_text, seconds_between
from groupjobs.lifecycle import ABANDONED, LIVE, RUNNING, SUCCEEDED

PAYLOAD: Final = ("args", "kwargs", "result", "error", "labels")
MOST_ATTEMPTS: Final = 100


def without_payload(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Rows with the database's own time as `now`; JSON stays in the database, where a corrupt one harms nobody."""
    told: QuerySet[Any] = rows.defer(*PAYLOAD).annotate(now=Now())
    return told


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt: how it ended, what it waited and ran (durations as text), and its traceback."""

    outcome: str
    fence: int
    life: int
    waited: str
    ran: str
    worker: str
    finished_at: datetime | None
    error: str = ""
    traceback: str = ""

    @property
    def word(self) -> str:
        """The outcome as people read it."""
        return phrase(self.outcome.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Detail:
    """The page of a run; each text is plain and escaped by the template."""

    run: Any
    reason: str
    state: State | None
    facts: list[tuple[str, Any]]
    arguments: Shown | None
    named_arguments: Shown | None
    labels: Shown | None
    result: Shown | None
    error: Shown | None
    tries: list[Try]
    progress: Any
    rate: str
    eta: str

    @property
    def payload(self) -> bool:
        """Whether any of it is shown."""
        return any((self.arguments, self.named_arguments, self.labels, self.result, self.error))


def detail_of(run: Any) -> Detail:
    """Read what belongs to a run beside its row: payload as text, attempts, progress."""
    texts = {f"{name}_text": Cast(F(name), TextField()) for name in PAYLOAD}
    raw = type(run).objects.using(run._state.db).filter(pk=run.pk).annotate(**texts).values_list(*texts)
    args, kwargs, result, error, labels = raw.first() or (None,) * 5
    progress = progress_of(run)
    rate, eta = _rate(run, progress)
    return Detail(
        run=run,
        reason=reason_text(run.reason),
        state=explain_run(facts_of_run(run), run.pk) if run.status in LIVE else None,
        facts=facts(run),
        arguments=shown_arguments(args, run.job),
        named_arguments=shown(kwargs),
        labels=shown(labels),
        result=shown(result),
        error=shown(error),
        tries=_tries(run),
        progress=progress,
        rate=rate,
        eta=eta,
    )


def facts(run: Any) -> list[tuple[str, Any]]:
    """Names and values of the columns that have something to say."""
    told = [
        (_("Job"), run.job),
        (_("Queue"), run.queue),
        (_("Age"), duration(seconds_between(run.enqueued_at, run.now))),
        (_("Attempts"), tries_text(run)),
        (_("Losses"), f"{run.losses} / {run.max_losses}"),
        (_("Life"), run.life),
        (_("Enqueued"), run.enqueued_at),
        (_("Run after"), run.run_after),
        (_("Expires"), run.expires_at),
        (_("Started"), run.started_at),
        (_("Finished"), run.finished_at),
        (_("Worker"), run.worker),
        (_("Fence"), str(run.fence)),
        (_("Order"), str(run.order)),
        (_("Priority"), run.priority),
        (_("Time limit"), run.time_limit),
        (_("After failure"), run.after_failure),
        (_("Atomic"), _("yes") if run.atomic else _("no")),
    ]
    if run.status == ABANDONED:
        told.append((_("Abandonment reported"), run.abandon_reported_at or _("not yet")))
        told.append((_("Reports tried"), run.report_attempts))
    return [(name, value) for name, value in told if value not in (None, "")]


def _tries(run: Any) -> list[Try]:
    logged = list(run.attempt_log.order_by("-id")[:MOST_ATTEMPTS])[::-1]
    tries, ready_at = [], run.enqueued_at
    for entry in logged:
        tries.append(
            Try(
                entry.outcome,
                entry.fence,
                entry.life,
                duration(seconds_between(ready_at, entry.started_at)),
                duration(seconds_between(entry.started_at, entry.finished_at)),
                entry.worker,
                entry.finished_at,
                ": ".join(part for part in (entry.error_class, entry.message) if part),
                entry.traceback,
            )
        )
        ready_at = entry.finished_at
    return tries + _last_try(run, ready_at)


def _last_try(run: Any, ready_at: datetime | None) -> list[Try]:
    """The attempt that runs now or that succeeded: it is in the row only."""
    if run.status not in (RUNNING, SUCCEEDED):
        return []
    begun = run.last_attempted_at
    ran = seconds_between(begun, run.finished_at or run.now)
    waited = duration(seconds_between(ready_at, begun))
    return [Try(run.status.lower(), run.fence, run.life, waited, duration(ran), run.worker, run.finished_at)]


def _rate(run: Any, progress: Any) -> tuple[str, str]:
    """Items per second since the attempt began, and the time that is left at this rate."""
    if progress is None or run.status not in LIVE or not progress.done:
        return "", ""
    seconds = seconds_between(run.last_attempted_at, progress.updated_at)
    if not seconds or seconds <= 0:
        return "", ""
    rate = progress.done / seconds
    left = max(0, progress.total - progress.done) if progress.total else None
    return f"{rate:.3g}", "" if left is None else duration(left / rate)
