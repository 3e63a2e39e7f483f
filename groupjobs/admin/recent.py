"""What ended lately in a group: looked for among the latest runs only, because no index serves it."""

from __future__ import annotations

from groupjobs import ledger
from groupjobs.admin.searching import latest
from groupjobs.lifecycle import TERMINAL
from groupjobs.models import JobRun


def ended_of(queue: str, group: str, run: int, most: int = 10) -> list[JobRun]:
    """The latest runs of a group that ended, newest first."""
    rows = JobRun.objects.using(ledger.alias())
    mine = latest(rows.all()).filter(queue=queue, group=group) if group else rows.filter(pk=run, queue=queue)
    ended = mine.filter(status__in=sorted(TERMINAL)).defer("args", "kwargs", "result", "error", "labels")
    return list(ended.order_by("-pk")[:most])
