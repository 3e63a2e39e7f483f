"""Carry out the loss of an attempt: the row under exactly the fence that was observed, then Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupjobs import ledger, lifecycle
from groupjobs.moves.ending import end, lost_attempt, tell_lost
from groupjobs.moves.publishing import publish

if TYPE_CHECKING:
    from groupjobs.models import JobRun


def lose(run: JobRun, *, counted: bool, reason: str, condemn: bool = False) -> str:
    """A RUNNING attempt is over without a word: "requeued", "abandoned", "released" or "" (the row has moved since).

    The loss is counted if `counted`. Over `max_losses`, or when `condemn` asks for it, the run is abandoned.
    One that somebody asked to cancel is "released": it ends as CANCELLED, and no loss is counted.
    """
    if run.cancel_requested_at is not None and not condemn:
        return "released" if end(run, "cancel", lifecycle.REQUESTED, message=reason) else ""
    if condemn or _condemned(run, counted):
        why = lifecycle.TOO_MANY_LOSSES if _condemned(run, counted) else lifecycle.REQUESTED
        return "abandoned" if end(run, "abandon", why, counted=counted, message=reason) else ""
    with ledger.one_commit():
        if not ledger.transit("lose", run.pk, run.status, run.fence, suspect=True, lost=counted):
            return ""
        ledger.record([lost_attempt(run, reason)])
    tell_lost(run, counted)
    run.status, run.alone = lifecycle.READY, True
    publish([run])
    return "requeued"


def lose_all(runs: Sequence[JobRun], *, reason: str) -> None:
    """The same for many at once, whose losses are counted where they were alone; those that go back share commits."""
    ends = {run for run in runs if run.cancel_requested_at is not None or _condemned(run, run.alone)}
    for run in ends:
        lose(run, counted=run.alone, reason=reason)
    for counted in (True, False):
        _go_back([run for run in runs if run.alone is counted and run not in ends], counted, reason)


def _go_back(runs: Sequence[JobRun], counted: bool, reason: str) -> None:
    if not runs:
        return
    with ledger.one_commit():
        fences = {run.pk: run.fence for run in runs}
        moved = ledger.transit_each("lose", fences, lifecycle.RUNNING, suspect=True, lost=counted)
        lost = [run for run in runs if run.pk in moved]
        ledger.record([lost_attempt(run, reason) for run in lost])
    for run in lost:
        tell_lost(run, counted)
        run.status, run.alone = lifecycle.READY, True
    publish(lost)


def _condemned(run: JobRun, counted: bool) -> bool:
    seen = lifecycle.RowSeen(run.status, run.fence, run.life, run.alone, run.losses, run.max_losses)
    return lifecycle.condemned(seen, counted)
