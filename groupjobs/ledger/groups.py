"""What somebody set on a group: holds and overrides, with a version that grows at each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import F, Subquery
from django.db.models.functions import Now

from groupjobs.ledger import conditions
from groupjobs.ledger.database import alias, one_commit
from groupjobs.ledger.transitions import transit
from groupjobs.lifecycle import READY

if TYPE_CHECKING:
    from groupjobs.models import JobGroup


def set_hold(queue: str, group: str, held: bool, reason: str = "", by: str = "") -> JobGroup | None:
    """Hold or open a group ('' is the whole queue). None when it was so already; else its row, with the new version."""
    from groupjobs.models import JobGroup

    groups = JobGroup.objects.using(alias())
    with one_commit():
        groups.get_or_create(queue=queue, group=group)
        changed = groups.filter(queue=queue, group=group, held=not held).update(
            held=held, reason=reason[:255], by=by[:150], since=Now(), version=F("version") + 1
        )
        return groups.get(queue=queue, group=group) if changed else None


def set_limits(
    queue: str, group: str, concurrency: int | None, rate: tuple[int, float] | None, by: str = ""
) -> JobGroup | None:
    """A group's own limits, None for the queue's. None when it was so already; else its row, with the new version."""
    from groupjobs.models import JobGroup

    count, seconds = rate or (None, None)
    groups = JobGroup.objects.using(alias())
    with one_commit():
        groups.get_or_create(queue=queue, group=group)
        row = groups.select_for_update().get(queue=queue, group=group)
        if (row.group_concurrency, row.rate_count, row.rate_seconds) == (concurrency, count, seconds):
            return None
        row.group_concurrency, row.rate_count, row.rate_seconds = concurrency, count, seconds
        row.version, row.by = row.version + 1, by[:150]
        row.save(using=alias())
        return row


def was_opened(queue: str) -> bool:
    """Whether this queue was ever opened for service: then somebody may still hold a reservation of before."""
    from groupjobs.models import JobGroup

    return JobGroup.objects.using(alias()).filter(queue=queue, group="").exists()


def mark_opened(queue: str) -> None:
    """Remember, before it happens, that this queue is opened for service."""
    from groupjobs.models import JobGroup

    JobGroup.objects.using(alias()).get_or_create(queue=queue, group="")


def group_row(queue: str, group: str) -> JobGroup | None:
    """The row of a group, if somebody ever set something on it."""
    from groupjobs.models import JobGroup

    return JobGroup.objects.using(alias()).filter(queue=queue, group=group).first()


def cancel_waiting(queue: str, group: str, failed: int, reason: str, limit: int) -> list[tuple[int, int, str]]:
    """Cancel up to `limit` READY runs of a group that were there when `failed` ended; answers their (id, life, job)."""
    from groupjobs.models import JobRun

    rows = JobRun.objects.using(alias())
    then = rows.filter(pk=failed).values("finished_at")
    line = conditions.ready(rows.filter(queue=queue, group=group))
    waiting = line.filter(enqueued_at__lte=Subquery(then)).order_by("id")
    page = list(waiting.values_list("id", "fence", "life", "job")[:limit])
    with one_commit():
        return [
            (run, life, job) for run, fence, life, job in page if transit("cancel", run, READY, fence, reason=reason)
        ]
