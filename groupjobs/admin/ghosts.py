"""Which runs are ghosts now: RUNNING rows whose lease is gone or belongs to the dead, as recovery judges them."""

from __future__ import annotations

from typing import Final

from groupjobs import conf, ledger, lifecycle
from groupjobs.explain.queues import REDIS_ERRORS
from groupjobs.ledger.conditions import live
from groupjobs.lifecycle import RUNNING
from groupjobs.models import JobRun
from groupjobs.recovery.judge import seen_entry, seen_row
from groupjobs.store import store_for
from groupjobs.store.keys import line_name

MOST: Final = 2_000  # RUNNING rows of a queue that are looked at, oldest first
PAGE: Final = 500


def ghosts() -> list[int]:
    """Ids of the ghosts in all queues; those of a queue whose Redis does not answer or is rebuilt are left out."""
    found: list[int] = []
    for queue in conf.current().queues:
        try:
            found += _ghosts_of(queue)
        except REDIS_ERRORS:
            continue
    return found


def _ghosts_of(queue: str) -> list[int]:
    rows = live(JobRun.objects.using(ledger.alias()).filter(queue=queue)).filter(status=RUNNING)
    running = list(rows.defer("args", "kwargs", "result", "error", "labels").order_by("pk")[:MOST])
    found: list[int] = []
    for start in range(0, len(running), PAGE):
        page = running[start : start + PAGE]
        told = store_for(queue).snapshot([(run.pk, line_name(run.group, run.pk)) for run in page])
        if told.state not in ("open", "paused"):
            return []
        verdicts = {run.pk: lifecycle.verdict(seen_row(run), seen_entry(told.entries.get(run.pk))) for run in page}
        found += [pk for pk, verdict in verdicts.items() if verdict.word == lifecycle.LOST]
    return found
