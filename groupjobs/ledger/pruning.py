"""Prune: delete ended runs that are old enough, with their progress and attempts, in bounded batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Exists, OuterRef

from groupjobs.ledger.database import alias, connection, one_commit
from groupjobs.ledger.transitions import later
from groupjobs.lifecycle import ABANDONED

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from groupjobs.models import JobRun

BATCH: Final = 500


def _old(status: str, seconds: float, queue: str) -> QuerySet[JobRun]:
    """Ended runs that may go: not of a held group, whose reason somebody has yet to look at, and not unreported."""
    from groupjobs.models import JobGroup, JobRun

    runs = JobRun.objects.using(alias()).filter(status=status, finished_at__lt=later(-seconds))
    if queue:
        runs = runs.filter(queue=queue)
    if status == ABANDONED:
        runs = runs.exclude(abandon_reported_at=None)
    held = JobGroup.objects.using(alias()).filter(queue=OuterRef("queue"), group=OuterRef("group"), held=True)
    return runs.exclude(Exists(held.exclude(group="")))


def count_old(status: str, seconds: float, queue: str = "") -> int:
    """How many runs of a terminal status ended longer ago than this and may be pruned."""
    return _old(status, seconds, queue).count()


def prune(status: str, seconds: float, queue: str = "", limit: int = BATCH) -> int:
    """Delete up to `limit` of them, the oldest first, in one commit; answers how many. A locked row is passed over."""
    from groupjobs.models import JobRun

    runs = _old(status, seconds, queue).order_by("finished_at")
    with one_commit():
        locked = runs.select_for_update(skip_locked=connection().features.has_select_for_update_skip_locked)
        ids = list(locked.values_list("pk", flat=True)[:limit])
        if ids:
            JobRun.objects.using(alias()).filter(pk__in=ids).delete()
    return len(ids)
