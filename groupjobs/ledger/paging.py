"""Pages of live rows for recovery, by id; payloads stay in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from groupjobs.ledger import conditions
from groupjobs.ledger.database import alias
from groupjobs.ledger.transitions import later

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from groupjobs.models import JobGroup, JobRun

LARGEST_BATCH: Final = 1000  # runs that one consumer can hold
PAYLOAD = ("args", "kwargs", "result", "error", "labels")


def _rows(queue: str, after: int = 0) -> QuerySet[JobRun]:
    from groupjobs.models import JobRun

    return JobRun.objects.using(alias()).filter(queue=queue, id__gt=after)


def _page(rows: QuerySet[JobRun], limit: int) -> list[JobRun]:
    return list(rows.defer(*PAYLOAD).order_by("id")[:limit])


def live_page(
    queue: str, after: int, limit: int, group: str | None = None, runs: Sequence[int] | None = None
) -> list[JobRun]:
    """Up to `limit` live runs of a queue with ids above `after`, of one group or among `runs` if given."""
    rows = conditions.live(_rows(queue, after))
    if group is not None:
        rows = rows.filter(group=group)
    return _page(rows if runs is None else rows.filter(id__in=list(runs)), limit)


def running_page(queue: str, after: int, limit: int) -> list[JobRun]:
    """Up to `limit` RUNNING runs of a queue with ids above `after`."""
    return _page(conditions.running(_rows(queue, after)), limit)


def running_with(queue: str, consumer: str) -> list[JobRun]:
    """The RUNNING runs of a queue whose rows name this consumer."""
    return _page(conditions.running(_rows(queue)).filter(consumer=consumer), LARGEST_BATCH)


def unpublished_page(queue: str, after: int, limit: int) -> list[JobRun]:
    """Up to `limit` runs of a queue that Redis was not told of, with ids above `after`."""
    return _page(_rows(queue, after).filter(unpublished=True), limit)


def group_page(queue: str, after: int, limit: int) -> list[JobGroup]:
    """Up to `limit` groups of a queue on which somebody set something, with row ids above `after`."""
    from groupjobs.models import JobGroup

    groups = JobGroup.objects.using(alias()).filter(queue=queue, pk__gt=after)
    return list(groups.order_by("pk")[:limit])


def ended_within(run: JobRun, label: str, seconds: float) -> int | None:
    """A run of the same job that was enqueued and ended in these last seconds, labelled with this run's key."""
    from groupjobs.models import JobRun

    since = later(-seconds)
    ended = JobRun.objects.using(alias()).filter(finished_at__gt=since, enqueued_at__gt=since)
    same = ended.filter(queue=run.queue, job=run.job, **{f"labels__{label}": run.dedup_key})
    return same.order_by("-pk").values_list("pk", flat=True).first()


def live_among(queue: str, runs: Sequence[int]) -> dict[int, str]:
    """Those of these ids that are live runs of the queue, with their groups."""
    return dict(conditions.live(_rows(queue)).filter(id__in=runs).values_list("id", "group"))


def queues_with_live_runs() -> list[str]:
    """Names of the queues that have live rows, also ones that the settings do not name: a look at an index for each."""
    from groupjobs.models import JobRun

    live, names = conditions.live(JobRun.objects.using(alias())), [""]
    while True:
        above = live.filter(queue__gt=names[-1]).order_by("queue", "id").values_list("queue", flat=True).first()
        if above is None:
            return names[1:]
        names.append(above)
