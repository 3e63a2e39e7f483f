"""End a run outside of a handler: abandoned or cancelled, with what its `after_failure` asks for its group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from groupjobs import ledger
from groupjobs.ledger import Attempt
from groupjobs.lifecycle import REQUESTED, RUNNING
from groupjobs.moves import holding
from groupjobs.moves.telling import announce
from groupjobs.signals import run_cancelled, run_condemned, run_lost


class Ending(Protocol):
    """A run as somebody saw it: a loaded batch's row, or a model instance."""

    @property
    def id(self) -> int:
        """Its id."""

    @property
    def queue(self) -> str:
        """Its queue."""

    @property
    def group(self) -> str:
        """Its group; empty when it is a group of its own."""

    @property
    def job(self) -> str:
        """The name of its job."""

    @property
    def status(self) -> str:
        """Its status when it was seen."""

    @property
    def fence(self) -> int:
        """Its fence when it was seen."""

    @property
    def life(self) -> int:
        """Its life."""

    @property
    def worker(self) -> str:
        """Who had it."""

    @property
    def after_failure(self) -> str:
        """What its job asks for the rest of the group."""


def end(run: Ending, name: str, reason: str, *, counted: bool = False, message: str = "") -> bool:
    """Carry out "abandon" or "cancel" exactly as the run was seen; False when it has changed since.

    `counted`: its RUNNING attempt was lost alone, which the same commit counts; an attempt that was lost
    or killed is logged with `message`.
    """
    log = None
    if run.status == RUNNING:
        log = lost_attempt(run, message)
        if name == "cancel" and reason == REQUESTED:
            log = replace(log, outcome="cancelled")
    if not finish(run, name, log, reason=reason, lost=counted):
        return False
    if log is not None and log.outcome == "lost":
        tell_lost(run, counted)
    if name == "cancel":
        announce(run_cancelled, **_about(run), reason=reason)
    if name == "abandon":
        announce(run_condemned, **_about(run), reason=reason)
    return True


def finish(run: Ending, name: str, log: Attempt | None, **changes: Any) -> bool:
    """End the row with these changes in one commit with its log, and do as its `after_failure` says."""
    stops = name in ("abandon", "fail") and bool(run.group) and run.after_failure in ("hold", "cancel")
    held = None
    with ledger.one_commit():
        if not ledger.transit(name, run.id, run.status, run.fence, **changes):
            return False
        ledger.record([log] if log else [])
        if stops:
            held = holding.hold_row(run.queue, run.group, holding.reason_after(run.after_failure, run.id))
    if held is not None:
        holding.tell_anew(held)
    if stops and run.after_failure == "cancel":
        holding.cancel_line(run.queue, run.group, run.id)
    return True


def lost_attempt(run: Ending, message: str = "") -> Attempt:
    """The log of an attempt that ended as a ghost."""
    return Attempt(run.id, run.fence, "lost", run.life, message=message, worker=run.worker)


def tell_lost(run: Ending, counted: bool) -> None:
    """Announce that an attempt ended as a ghost."""
    announce(run_lost, **_about(run), worker=run.worker, counted=counted)


def _about(run: Ending) -> dict[str, Any]:
    return {"run": run.id, "queue": run.queue, "job": run.job, "group": run.group, "fence": run.fence}
