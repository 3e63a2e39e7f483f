"""The log of attempts that did not end in success: one row per (run, fence), written once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


def record(attempts: Sequence[Attempt]) -> None:
    """Insert attempts; one that is already there stays as it is."""
    from groupjobs.models import JobAttempt, JobRun

    if not attempts:
        return
    started = dict(
        JobRun.objects.using(alias())
        .filter(id__in=[attempt.run for attempt in attempts])
        .values_list("id", "last_attempted_at")
    )
    rows = [JobAttempt(started_at=started.get(a.run), finished_at=Now(), **_columns(a)) for a in attempts]
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
