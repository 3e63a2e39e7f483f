"""End a run outside of a handler: abandoned or cancelled, with what its `after_failure` asks for its group."""

from __future__ import annotations

from typing import Protocol

from groupjobs import ledger
from groupjobs.ledger import Attempt
from groupjobs.lifecycle import RUNNING
from groupjobs.moves import holding


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

    `counted`: its RUNNING attempt was lost alone, which the same commit counts; a lost attempt is
    logged with `message`.
    """
    stops = name == "abandon" and bool(run.group) and run.after_failure in ("hold", "cancel")
    held = None
    with ledger.one_commit():
        if not ledger.transit(name, run.id, run.status, run.fence, reason=reason, lost=counted):
            return False
        ledger.record([lost_attempt(run, message)] if run.status == RUNNING else [])
        if stops:
            held = holding.hold_row(run.queue, run.group, holding.reason_after(run.after_failure, run.id))
    if held is not None:
        holding.tell(held)
    if stops and run.after_failure == "cancel":
        holding.cancel_line(run.queue, run.group, run.id)
    return True


def lost_attempt(run: Ending, message: str = "") -> Attempt:
    """The log of an attempt that ended as a ghost."""
    return Attempt(run.id, run.fence, "lost", run.life, message=message, worker=run.worker)
