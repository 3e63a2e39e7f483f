"""The verdict of recovery about one live row and what Redis says of it: a pure table.

The row was read first. A lease exists before its row says RUNNING, and a row is settled before its
lease ends, so RUNNING without a living lease, seen in this order, is a loss and never a live run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from groupjobs.lifecycle.statuses import LIVE, READY, RUNNING

FINE: Final = "fine"  # waits in its place
KEPT: Final = "kept"  # held by a living consumer
PUBLISH: Final = "publish"  # Redis does not know it, or knows an older life or hint
RELEASE: Final = "release"  # reserved by a ghost that never began it
LOST: Final = "lost"  # its attempt is over without a word

UNKNOWN: Final = "unknown to Redis"


@dataclass(frozen=True, slots=True)
class RowSeen:
    """What decides, of a row as it was read."""

    status: str
    fence: int
    life: int
    alone: bool
    losses: int
    max_losses: int


@dataclass(frozen=True, slots=True)
class EntrySeen:
    """What Redis answered about the run after its row was read; `ghost` says that its lease's holder is dead."""

    leased: bool
    life: int
    fence: int
    alone: bool
    ghost: bool = False
    silent: bool = False
    interrupted: bool = False
    overdue: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do about a run, and why in one phrase."""

    word: str
    reason: str


def verdict(row: RowSeen, entry: EntrySeen | None) -> Verdict:
    """Judge a run from its row and, read afterwards, its entry in Redis (None: unknown there)."""
    if row.status not in LIVE:
        return Verdict(FINE, "ended")
    return _ready(row, entry) if row.status == READY else _running(row, entry)


def _ready(row: RowSeen, entry: EntrySeen | None) -> Verdict:
    if entry is None:
        return Verdict(PUBLISH, UNKNOWN)
    if entry.leased:
        return Verdict(RELEASE, "reserved by a ghost") if entry.ghost else Verdict(KEPT, "reserved")
    if entry.life < row.life:
        return Verdict(PUBLISH, "Redis knows an older life")
    if row.alone and not entry.alone:
        return Verdict(PUBLISH, "Redis forgot that it is a suspect")
    return Verdict(FINE, "waits")


def _running(row: RowSeen, entry: EntrySeen | None) -> Verdict:
    if entry is None:
        return Verdict(LOST, "running without a lease")
    if not entry.leased:
        return Verdict(LOST, "its lease was healed")
    if entry.ghost:
        return Verdict(LOST, "its worker is dead")
    if entry.fence < row.fence:
        return Verdict(LOST, "leased under an older fence")
    return Verdict(KEPT, "its worker is silent" if entry.silent else "its worker lives")


def loss_counts(row: RowSeen, entry: EntrySeen | None) -> bool:
    """Only a run that was reserved alone pays, and not for a worker that had announced its shutdown."""
    return row.status == RUNNING and row.alone and not (entry is not None and entry.interrupted)


def condemned(row: RowSeen, counted: bool) -> bool:
    """Whether this loss is one too many."""
    return row.losses + counted > row.max_losses
