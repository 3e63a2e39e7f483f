"""What ended lately in a group: looked for among the latest runs only, because no index serves it."""

from __future__ import annotations

from typing import Final

from django.db.models import Max

from groupjobs import ledger
from groupjobs.lifecycle import TERMINAL
from groupjobs.models import JobRun

WINDOW: Final = 50_000  # ids from the newest down


def ended_of(queue: str, group: str, run: int, most: int = 10) -> list[JobRun]:
    """The latest runs of a group that ended, newest first."""
    rows = JobRun.objects.using(ledger.alias())
    if not group:
        ended = rows.filter(pk=run, queue=queue)
    else:
        newest = rows.aggregate(newest=Max("pk"))["newest"] or 0
        ended = rows.filter(pk__gt=newest - WINDOW, queue=queue, group=group)
    ended = ended.filter(status__in=sorted(TERMINAL)).defer("args", "kwargs", "result", "error", "labels")
    return list(ended.order_by("-pk")[:most])
