"""Admit a reserved run, or say what becomes of it instead: pure decisions of a consumer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from groupjobs.lifecycle.statuses import EXPIRED, LIVE, REQUESTED, RUNNING, TOO_MANY_LOSSES


class Seen(NamedTuple):
    """A run's row as a consumer loaded it, with what the same query answered about its group.

    `ahead` is the id of an earlier live row of the group that is not in the batch; `early` the
    seconds that are left until `run_after`; `held` and `version` come from the group's own row.
    """

    id: int
    group: str
    job: str
    args: str
    kwargs: str
    status: str
    fence: int
    alone: bool
    life: int
    attempts: int
    failures: int
    losses: int
    max_attempts: int
    max_losses: int
    after_failure: str
    on_retry: str
    atomic: bool
    time_limit: float | None
    soft_time_limit: float | None
    worker: str
    consumer: str
    labels: str
    cancel_requested: bool
    expired: bool
    early: float
    age: float
    ahead: int | None
    held: bool
    version: int
    order: int = 0
    queue: str = ""
    coalesces: bool = False
    keyed: bool = False  # it has a dedup key

    @property
    def must_be_alone(self) -> bool:
        """Whether every reservation of this run has to be a batch of one."""
        return self.max_losses == 0 or self.time_limit is not None or self.coalesces


@dataclass(frozen=True, slots=True)
class Lease:
    """What Redis said when it reserved the run: the plain facts that a decision needs."""

    fence: int
    alone: bool
    healed: int
    interrupted: bool
    consumer: str
    overdue: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """What becomes of a reserved run before its handler may start.

    `kind`: "begin", "back" (give the reservation back), "suspect" (give it back, to be reserved
    alone), "owner" (the lease belongs to the row's consumer), "done" (the entry has no live row),
    "overdue" (the row's attempt lasted longer than its time limit: a failure), "abandon" or "cancel" (the
    row ends now, with `reason`). `lost` says that the row's RUNNING
    attempt ended as a ghost, `counted` that this costs a loss.
    """

    kind: str
    reason: str = ""
    delay: float = 0.0
    lost: bool = False
    counted: bool = False
    blocks: bool = False


DONE: Final = Admission("done")
OWNER: Final = Admission("owner", blocks=True)
# Seconds until a run is looked at again that Redis would serve at once: it may be of another mind for a while,
# by another clock or because it knows a newer version of the group.
HELD_PAUSE: Final = 0.2
ORDER_PAUSE: Final = 0.1
EARLY_TOLERANCE: Final = 0.25  # seconds that the clocks of Redis and the database may differ


def admit(row: Seen | None, lease: Lease) -> Admission:
    """Decide about one reservation from the row's status, fence and group.

    `RUNNING` under an older fence is taken only if its lease was healed; else its owner may live.
    """
    if row is None or row.status not in LIVE:
        return DONE
    if row.fence > lease.fence:
        return Admission("back", "newer_fence", blocks=True)
    if row.status == RUNNING:
        return _admit_running(row, lease)
    if row.fence == lease.fence:  # begun under this very fence and given back since
        return Admission("back", "newer_fence", blocks=True)
    return _admit_waiting(row, lease, lost=False)


def _admit_running(row: Seen, lease: Lease) -> Admission:
    if row.fence == lease.fence:
        mine = row.consumer == lease.consumer
        return Admission("begin", "again") if mine else Admission("back", "newer_fence", blocks=True)
    if lease.healed < row.fence:
        return OWNER
    if row.cancel_requested:
        return Admission("cancel", REQUESTED, lost=True)
    if lease.overdue:
        return Admission("overdue", blocks=True)
    counted = row.alone and not lease.interrupted
    if counted and row.losses + 1 > row.max_losses:
        return Admission("abandon", TOO_MANY_LOSSES, lost=True, counted=True)
    return _admit_waiting(row, lease, lost=True, counted=counted)


def _admit_waiting(row: Seen, lease: Lease, *, lost: bool, counted: bool = False) -> Admission:
    if row.cancel_requested:
        return Admission("cancel", REQUESTED, lost=lost, counted=counted)
    if row.expired:
        return Admission("cancel", EXPIRED, lost=lost, counted=counted)
    if row.held or row.ahead is not None:
        reason, delay = ("held", HELD_PAUSE) if row.held else ("order", ORDER_PAUSE)
        return Admission("back", reason, delay=delay, lost=lost, counted=counted, blocks=True)
    if row.early > EARLY_TOLERANCE and not lost:
        return Admission("back", "early", delay=row.early, blocks=True)
    if (row.alone or row.must_be_alone or lost) and not lease.alone:
        return Admission("suspect", lost=lost, counted=counted, blocks=True)
    return Admission("begin", lost=lost, counted=counted)


def admit_unknown(admission: Admission, age: float, grace: float, reason: str) -> Admission:
    """A run whose job this worker does not know, or whose arguments do not bind.

    It goes back without a loss, later each time; older than `grace` seconds it is abandoned.
    """
    if age >= grace:
        return Admission("abandon", reason, lost=admission.lost, counted=admission.counted)
    delay = min(max(age / 4, 0.5), 60.0, max(grace - age, 0.5))
    return Admission("back", reason, delay=delay, lost=admission.lost, counted=admission.counted, blocks=True)
