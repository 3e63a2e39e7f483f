"""Read how far runs have come: for pages and APIs, in ASGI views too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from asgiref.sync import sync_to_async

from groupjobs.ledger import alias
from groupjobs.policy import checked_ids

if TYPE_CHECKING:
    from groupjobs.models import JobProgress


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one run has come. `percent` is None while the total is unknown, `rate` is per second."""

    run: int
    status: str
    done: int
    total: int | None
    message: str
    phase: str
    updated_at: datetime | None
    percent: float | None
    rate: float | None
    eta: timedelta | None


def progress(run_ids: Iterable[int | str]) -> dict[int, Progress]:
    """The progress of these runs by id, with rate and time left; unknown ids are left out. One query.

    Refused (a ValueError) for what is no list of ids.
    """
    from groupjobs.models import JobProgress

    rows = JobProgress.objects.using(alias()).filter(run_id__in=checked_ids(run_ids))
    return {row.pk: _progress(row) for row in rows.select_related("run")}


async def aprogress(run_ids: Iterable[int | str]) -> dict[int, Progress]:
    """`progress` for asynchronous views."""
    return await sync_to_async(progress)(list(run_ids))


def _progress(row: JobProgress) -> Progress:
    run, rate = row.run, _rate(row)
    left = None if row.total is None else max(0, row.total - row.done)
    eta = timedelta(seconds=left / rate) if rate and left is not None else None
    return Progress(
        run.pk, run.status, row.done, row.total, row.message, row.phase, row.updated_at, row.percent, rate, eta
    )


def _rate(row: JobProgress) -> float | None:
    """Steps per second since this attempt began, until its last word."""
    begun, told = row.run.last_attempted_at, row.run.finished_at or row.updated_at
    if begun is None or told is None or told <= begun:
        return None
    return row.done / (told - begun).total_seconds()
