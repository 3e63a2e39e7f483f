"""Facts about queues, groups and runs, as they were read; and the state that they explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from groupjobs.explain.names import NAMES
from groupjobs.store.replies import Overview

QUIET: Final = 600.0  # seconds without a word of progress after which a run that reported some counts as quiet


@dataclass(frozen=True, slots=True)
class HoldFacts:
    """A person's hold of a group or pause of a queue; `by` is '' when the queue did it itself."""

    by: str
    reason: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """Limits of a group's own: consumers at once, and runs begun per seconds; None: the queue's."""

    concurrency: int | None
    rate: tuple[int, float] | None


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A queue: what Redis answers, and who serves it.

    `state`: open, paused, rebuild, format (a newer release made its keys), unnamed (by the settings) or down.
    `workers` beat for this queue and do not shut down; `elsewhere` live and serve other queues, or none.
    `beats`: seconds since each worker's last beat. Durations are in seconds. `opened`: some worker has
    served it before. `overview` is what Redis answered, None when it did not.
    """

    name: str
    state: str
    ttl: float
    grace: float = 3600.0
    celery_queue: str = ""
    problem: str = ""
    rebuilding: float = 0.0
    workers: int = 0
    elsewhere: int = 0
    consumers: int = 0
    ready: int = 0
    beats: Mapping[str, float] = field(default_factory=dict)
    pause: HoldFacts | None = None
    limited: bool = False
    opened: bool = True
    overview: Overview | None = None

    @property
    def absent(self) -> bool:
        """Whether nobody serves it: after Redis lost its memory, those who live have beaten again by now."""
        return not self.workers and (not self.opened or self.state != "rebuild" or self.rebuilding > self.ttl / 2)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A live run. `place` in Redis: line, scheduled, leased, or '' when Redis does not know it.

    `known`: this process knows its job. `quiet`: seconds since it last reported progress, None if it never did.
    """

    id: int
    job: str
    status: str
    enqueued_at: datetime
    attempts: int = 0
    failures: int = 0
    max_attempts: int = 1
    begun_at: datetime | None = None
    run_after: datetime | None = None
    yields: bool = False
    unpublished: bool = False
    cancel_requested: bool = False
    worker: str = ""
    failure: str = ""
    known: bool = True
    quiet: float | None = None
    place: str = ""
    ghost: bool = False
    silent: bool = False


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """An abandoned run whose abandonment is not reported yet; `due` is when it is tried again."""

    run: int
    reason: str
    attempts: int
    parked: bool
    due: datetime | None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group at the database's time `now`: its head, and what Redis says of the group.

    `later`: seconds until the group may go on, None when no time keeps it. `held`: how many runs are leased.
    """

    queue: QueueFacts
    group: str
    now: datetime
    head: RunFacts | None = None
    hold: HoldFacts | None = None
    limited: bool = False
    ready: bool = False
    later: float | None = None
    held: int = 0
    strays: int = 0
    unreported: ReportFacts | None = None
    limits: LimitFacts | None = None


@dataclass(frozen=True, slots=True)
class State:
    """`word` is stable, for filters and machines; `reason` is for people.

    `mend` names what helps: recover, resume, resume_queue, start_worker, at_once, redeliver, or '' for patience.
    """

    word: str
    reason: str
    since: datetime | None = None
    until: datetime | None = None
    mend: str = ""

    @property
    def name(self) -> str:
        """The word as people read it."""
        return str(NAMES[self.word])
