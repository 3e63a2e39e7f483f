"""Reports of abandonments: which are due, who makes one, and its acknowledgement on the row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from django.db.models import F, Q
from django.db.models.functions import Now

from groupjobs.ledger import conditions
from groupjobs.ledger.database import alias
from groupjobs.ledger.transitions import later
from groupjobs.lifecycle import UNKNOWN_JOB

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from groupjobs.models import JobRun

PAGE = 100


def _unacknowledged() -> QuerySet[JobRun]:
    from groupjobs.models import JobRun

    return conditions.unreported(JobRun.objects.using(alias()))


def unreported(
    queue: str, parked: int, runs: Sequence[int] | None = None, unknown: Collection[str] = ()
) -> list[JobRun]:
    """Abandoned runs whose report is due and was tried fewer than `parked` times; at most a hundred.

    Runs of the jobs in `unknown` are left out, but for those that were abandoned because nobody knew their job.
    """
    due = _unacknowledged().filter(Q(report_after=None) | Q(report_after__lte=Now()), queue=queue)
    due = due.filter(report_attempts__lt=parked)
    if unknown:
        due = due.filter(~Q(job__in=unknown) | Q(reason=UNKNOWN_JOB))
    if runs is not None:
        due = due.filter(pk__in=runs)
    return list(due.order_by("report_after", "id")[:PAGE])


def claim_report(run: JobRun, pause: float) -> bool:
    """Take the report of this run for now: nobody else makes it for `pause` seconds."""
    mine = _unacknowledged().filter(pk=run.pk, life=run.life, report_attempts=run.report_attempts)
    return mine.update(report_attempts=F("report_attempts") + 1, report_after=later(pause)) == 1


def acknowledge_report(run: JobRun) -> bool:
    """Every callback has returned: the report of this life is made."""
    return _unacknowledged().filter(pk=run.pk, life=run.life).update(abandon_reported_at=Now()) == 1
