"""Insert runs and their progress rows: in the caller's transaction, a thousand rows a statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupjobs.ledger.database import alias, one_commit

if TYPE_CHECKING:
    from groupjobs.models import JobRun

THOUSAND = 1000


def insert(runs: Sequence[JobRun]) -> None:
    """Write new runs, all or nothing; their ids are set afterwards, growing in the order given."""
    from groupjobs.models import JobProgress, JobRun

    with one_commit():
        JobRun.objects.using(alias()).bulk_create(runs, batch_size=THOUSAND)
        progress = [JobProgress(run_id=run.pk) for run in runs]
        JobProgress.objects.using(alias()).bulk_create(progress, batch_size=THOUSAND)


def flag_unpublished(runs: Sequence[int], flag: bool = True) -> None:
    """Remember in one UPDATE that Redis was not told of these runs (or, with False, that it was)."""
    from groupjobs.lifecycle import LIVE
    from groupjobs.models import JobRun

    for start in range(0, len(runs), THOUSAND):
        rows = JobRun.objects.using(alias()).filter(pk__in=runs[start : start + THOUSAND], status__in=LIVE)
        rows.filter(unpublished=not flag).update(unpublished=flag)


def rows(runs: Sequence[int]) -> list[JobRun]:
    """The live rows of these runs, whole."""
    from groupjobs.lifecycle import LIVE
    from groupjobs.models import JobRun

    return list(JobRun.objects.using(alias()).filter(pk__in=runs, status__in=LIVE))
