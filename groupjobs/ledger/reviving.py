"""An operator's words on rows: a new life, a request to cancel, another time."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F
from django.db.models.functions import Now

from groupjobs.ledger import conditions
from groupjobs.ledger.database import alias, one_commit
from groupjobs.ledger.inserting import Batch, insert
from groupjobs.lifecycle import READY, RUNNING, TERMINAL

if TYPE_CHECKING:
    from groupjobs.models import JobRun

# A new life begins with fresh budgets; the fence stays, so that late words of the old one are refused.
_FRESH: Final[dict[str, Any]] = {
    "status": READY,
    "reason": "",
    "run_after": None,
    "yields": False,
    "expires_at": None,
    "alone": False,
    "attempts": 0,
    "failures": 0,
    "losses": 0,
    "started_at": None,
    "finished_at": None,
    "result": None,
    "error": None,
    "cancel_requested_at": None,
    "abandon_reported_at": None,
    "report_attempts": 0,
    "report_after": None,
}
RETRIED_AS: Final = "retried_as"
_NO_PROGRESS: Final[dict[str, Any]] = {"done": 0, "total": None, "message": "", "phase": "", "updated_at": None}


def revive(run: JobRun, reason: str = "") -> bool:
    """A terminal run, exactly as it was seen, begins a new life as READY; its progress starts anew."""
    from groupjobs.models import JobProgress, JobRun

    if run.status not in TERMINAL:
        return False
    with one_commit():
        seen = JobRun.objects.using(alias()).filter(pk=run.pk, status=run.status, life=run.life)
        if seen.update(**_FRESH | {"life": F("life") + 1, "reason": reason[:255]}) != 1:
            return False
        JobProgress.objects.using(alias()).filter(run_id=run.pk).update(**_NO_PROGRESS)
    return True


def start_over(run: JobRun) -> JobRun | None:
    """A new run with what this terminal one was enqueued with, at the end of its line; None when there is one already.

    The old row stays as it is, but for the label "retried_as".
    """
    from groupjobs.models import JobRun

    with one_commit():
        rows = JobRun.objects.using(alias()).select_for_update()
        old = rows.filter(pk=run.pk, status=run.status, life=run.life).first()
        if old is None or old.status not in TERMINAL or RETRIED_AS in old.labels:
            return None
        line = (old.group, json.dumps(old.args), json.dumps(old.kwargs), None)
        options = {option.name: getattr(old, option.name) for option in fields(Batch) if hasattr(old, option.name)}
        [new] = insert(Batch(lines=[line], **options | {"run_after": None, "coalesces": False}))
        rows.filter(pk=old.pk).update(labels={**old.labels, RETRIED_AS: new.pk})
        return new


def ask_to_cancel(run: JobRun) -> bool:
    """Mark a RUNNING run, in this life: its handler may look, and no further attempt will begin."""
    from groupjobs.models import JobRun

    running = JobRun.objects.using(alias()).filter(pk=run.pk, status=RUNNING, life=run.life)
    return running.filter(cancel_requested_at=None).update(cancel_requested_at=Now()) == 1


def reschedule(run: JobRun, run_after: datetime | None) -> bool:
    """Another time for a run that waits, under the fence that was seen; None means at once."""
    from groupjobs.models import JobRun

    waiting = JobRun.objects.using(alias()).filter(pk=run.pk, status=READY, life=run.life, fence=run.fence)
    return waiting.update(run_after=run_after, yields=run_after is not None) == 1


def find(runs: list[int]) -> list[JobRun]:
    """The rows of these ids, without their payloads, in the order of the ids."""
    from groupjobs.ledger.paging import PAYLOAD
    from groupjobs.models import JobRun

    return list(JobRun.objects.using(alias()).filter(pk__in=runs).defer(*PAYLOAD).order_by("pk"))


def head_of(queue: str, group: str) -> JobRun | None:
    """The first waiting or running run of a group's line."""
    from groupjobs.models import JobRun

    rows = JobRun.objects.using(alias()).filter(queue=queue, group=group)
    return conditions.live(rows).order_by("order", "pk").first()
