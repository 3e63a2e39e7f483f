"""Pages of live rows for recovery, by id; payloads stay in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from groupjobs.ledger.database import alias
from groupjobs.ledger.transitions import later
from groupjobs.lifecycle import LIVE, RUNNING

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from groupjobs.models import JobGroup, JobRun

LARGEST_BATCH: Final = 1000  # runs that one consumer can hold
PAYLOAD = ("args", "kwargs", "result", "error", "labels")


def _live(queue: str, after: int, limit: int, **narrow: object) -> list[JobRun]:
    from groupjobs.models import JobRun

    runs: QuerySet[JobRun] = JobRun.objects.using(alias()).filter(queue=queue, id__gt=after, **narrow)
    return list(runs.defer(*PAYLOAD).order_by("id")[:limit])


def live_page(
    queue: str, after: int, limit: int, group: str | None = None, runs: Sequence[int] | None = None
) -> list[JobRun]:
    """Up to `limit` live runs of a queue with ids above `after`, of one group or among `runs` if given."""
    narrow: dict[str, object] = {"status__in": sorted(LIVE)}
    if group is not None:
        narrow["group"] = group
    if runs is not None:
        narrow["id__in"] = list(runs)
    return _live(queue, after, limit, **narrow)


def running_page(queue: str, after: int, limit: int) -> list[JobRun]:
    """Up to `limit` RUNNING runs of a queue with ids above `after`."""
    return _live(queue, after, limit, status=RUNNING)


def running_with(queue: str, consumer: str) -> list[JobRun]:
    """The RUNNING runs of a queue whose rows name this consumer."""
    return _live(queue, 0, LARGEST_BATCH, status=RUNNING, consumer=consumer)


def unpublished_page(queue: str, after: int, limit: int) -> list[JobRun]:
    """Up to `limit` runs of a queue that Redis was not told of, with ids above `after`."""
    return _live(queue, after, limit, unpublished=True)


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
    from groupjobs.models import JobRun

    rows = JobRun.objects.using(alias()).filter(queue=queue, id__in=runs, status__in=sorted(LIVE))
    return dict(rows.values_list("id", "group"))


def queues_with_live_runs() -> list[str]:
    """Names of the queues that have live rows, also ones that the settings no longer name."""
    from groupjobs.models import JobRun

    rows = JobRun.objects.using(alias()).filter(status__in=sorted(LIVE)).order_by()
    return sorted(rows.values_list("queue", flat=True).distinct())
