"""Take reports of abandonments up again that were parked, or that wait for their next try."""

from __future__ import annotations

from collections.abc import Sequence

from groupjobs.ledger.conditions import unreported
from groupjobs.ledger.database import alias, one_commit


def report_now(runs: Sequence[int], parked: int) -> int:
    """The reports of these runs are due at once; those that failed `parked` times begin anew. Answers how many."""
    from groupjobs.models import JobRun

    with one_commit():
        mine = unreported(JobRun.objects.using(alias()).filter(pk__in=runs))
        mine.filter(report_attempts__gte=parked).update(report_attempts=0)
        return mine.update(report_after=None)
