"""What the scripts take and answer, as Python values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class StoreError(Exception):
    """The store refused a call; nothing was written."""


class EpochChanged(StoreError):
    """The call names an epoch that is no longer the current one."""


class NewerFormat(StoreError):
    """A newer release made the queue's keys; this one must not touch them."""


class BadArgument(StoreError, ValueError):
    """A script refused an argument; the message names it."""


class Publication(NamedTuple):
    """A run to be put into its line. `group` is its line name; times are ms (`due_ms` by Redis TIME).

    `alone`: 0 no, 1 suspect, 2 always. With `yields` a run that is not due waits in `scheduled` and
    joins its line then; without, it stands in its line and its group waits for it.
    """

    run: int
    group: str
    order: int = 0
    priority: int = 0
    life: int = 1
    fence: int = 0
    alone: int = 0
    due_ms: int | None = None
    delay_ms: int | None = None
    yields: bool = False


class Reservation(NamedTuple):
    """A run handed to a consumer.

    `healed`: highest fence of this run that was healed since its row was last settled (0: none);
    `interrupted`: that lease's worker had announced its shutdown; `overdue`: it lasted longer than its limit.
    """

    run: int
    fence: int
    life: int
    alone: bool
    group: str
    healed: int = 0
    interrupted: bool = False
    overdue: bool = False


class Outcome(NamedTuple):
    """How a reservation ended; `verb` is one of done, retry, back, suspect, owner, hold."""

    run: int
    fence: int
    verb: str
    delay_ms: int = 0
    yields: bool = False
    fence_to: int = 0
    owner: str = ""
    owner_worker: str = ""


class Consumer(NamedTuple):
    """One execution of the consumer task: `nonce` is made anew by each execution."""

    nonce: str
    worker: str
    pid: int


class Lease(NamedTuple):
    """A run that a consumer holds, as it knows it itself."""

    run: int
    group: str
    order: int
    life: int
    fence: int
    alone: int


class EnqueueReply(NamedTuple):
    """`bells`: how many to ring now. `state`: open, rebuild or format."""

    bells: int
    state: str


class StepReply(NamedTuple):
    """`state`: open, paused, rebuild, repeat, refused or format. `ended`: this consumer was struck off."""

    state: str
    reservations: tuple[Reservation, ...] = ()
    stale: tuple[tuple[int, int], ...] = ()
    bells: int = 0
    ended: bool = False


class KeepReply(NamedTuple):
    """`state`: open, paused, rebuild, refused or format."""

    state: str
    lost: tuple[tuple[int, int], ...] = ()
    cancels: tuple[int, ...] = ()


class BeatReply(NamedTuple):
    """`consumers`: nonce -> pid of the registered executions of this worker.

    `kills`: executions of this worker, each with a run of it that is cancelled by force.
    """

    alive: bool
    state: str
    epoch: str
    consumers: Mapping[str, int]
    kills: tuple[tuple[str, int], ...] = ()


class TickReply(NamedTuple):
    """`wait_ms`: until something is due (None: nothing); `rebuilding_ms`: age of the epoch in rebuild."""

    state: str
    epoch: str
    bells: int
    ready: int
    wait_ms: int | None
    unserved: bool
    rebuilding_ms: int


class ReapReply(NamedTuple):
    """Leases healed by this call, by whomever they were held, and whether more wait."""

    healed: int
    more: bool


class Entry(NamedTuple):
    """What Redis knows of a run. `place`: line, scheduled or leased."""

    place: str
    life: int
    fence: int
    alone: int
    again: int
    consumer: str
    worker: str
    ghost: bool
    silent: bool
    healed: int
    wait_ms: int
    interrupted: bool = False
    overdue: bool = False


class GroupState(NamedTuple):
    """`strays`: members of the held set without a live lease."""

    ready: bool
    later_ms: int | None
    waiting: int
    held: tuple[int, ...]
    held_flag: bool
    version: int
    strays: tuple[int, ...]


class Snapshot(NamedTuple):
    """Runs and groups that Redis does not know are missing from `entries`."""

    state: str
    epoch: str
    rebuilding_ms: int
    entries: Mapping[int, Entry]
    groups: Mapping[str, GroupState]


class WorkerState(NamedTuple):
    """`served_age_ms`: since its last served step, by the queue's clock (None: none yet)."""

    worker: str
    beat_age_ms: int
    slots: int
    leaving: bool
    served_age_ms: int | None


class ConsumerState(NamedTuple):
    """`seen_age_ms`: since its last step or keep, by the queue's clock."""

    nonce: str
    worker: str
    pid: int
    seen_age_ms: int
    leases: int


class Overview(NamedTuple):
    """Counts of groups, runs and dead consumers whose leases are still to be healed.

    `ready_age_ms`: how long the group that is served next has been ready (None: none is); `sweep_age_ms`:
    since a full sweep ended (None: none has, since Redis lost its memory).
    """

    state: str
    epoch: str
    paused: bool
    ready: int
    later: int
    scheduled: int
    held_groups: int
    dead: int
    workers: tuple[WorkerState, ...]
    consumers: tuple[ConsumerState, ...]
    stats: Mapping[str, int]
    rebuilding_ms: int
    ready_age_ms: int | None = None
    epoch_age_ms: int = 0
    sweep_age_ms: int | None = None


class Page(NamedTuple):
    """`cursor` is '' on the last page."""

    cursor: str
    entries: tuple[tuple[int, str], ...]
