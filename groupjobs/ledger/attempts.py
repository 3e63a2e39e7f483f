"""The log of attempts that did not end in success: one row per (run, fence), written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models.functions import Now

from groupjobs.ledger.database import alias
from groupjobs.lifecycle import Seen


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one attempt ended: outcome is "failed", "lost", "cancelled" or "timed_out"."""

    run: int
    fence: int
    outcome: str
    life: int = 1
    error_class: str = ""
    message: str = ""
    traceback: str = ""
    worker: str = ""

    @classmethod
    def lost(cls, row: Seen, fence: int, message: str = "") -> Attempt:
        """The attempt under `fence` ended as a ghost of the row's worker."""
        return cls(row.id, fence, "lost", row.life, message=message, worker=row.worker)


def started_at(attempts: Sequence[Attempt]) -> dict[int, datetime | None]:
    """When the last attempt of each of these runs began, as their rows say now."""
    from groupjobs.models import JobRun

    rows = JobRun.objects.using(alias()).filter(id__in=[attempt.run for attempt in attempts])
    return dict(rows.values_list("id", "last_attempted_at")) if attempts else {}


def record(attempts: Sequence[Attempt], started: Mapping[int, datetime | None] | None = None) -> None:
    """Insert attempts; one that is already there stays as it is. `started`: what `started_at` said before."""
    from groupjobs.models import JobAttempt

    if not attempts:
        return
    began = started_at(attempts) if started is None else started
    rows = [JobAttempt(started_at=began.get(a.run), finished_at=Now(), **_columns(a)) for a in attempts]
    JobAttempt.objects.using(alias()).bulk_create(rows, ignore_conflicts=True)


def _columns(attempt: Attempt) -> dict[str, Any]:
    return {
        "run_id": attempt.run,
        "fence": attempt.fence,
        "life": attempt.life,
        "outcome": attempt.outcome,
        "error_class": attempt.error_class[:255],
        "message": attempt.message,
        "traceback": attempt.traceback,
        "worker": attempt.worker,
    }
