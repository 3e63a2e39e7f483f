"""What happened in a chaos run, as plain data. Clocks are seconds of the machine's monotonic clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

COMMITTED, ROLLED_BACK, UNKNOWN = "committed", "rolled_back", "unknown"
OK, FAIL, DOOMED, GONE = "ok", "fail", "doomed", "gone"  # how a handler says that it ended


@dataclass(frozen=True, slots=True)
class Intent:
    """One enqueue by a producer.

    `called`: just before `enqueue()`. `committed`: when it was certain to be committed if it ever was,
    None when it was not or nobody knows. `expected`: the terminal status that the run must reach.
    `yields`: its retries let others pass; `delayed`: it was enqueued with `run_after`.
    """

    token: str
    group: str
    called: float
    committed: float | None
    fate: str = COMMITTED
    expected: str = "SUCCEEDED"
    atomic: bool = False
    yields: bool = False
    delayed: bool = False


@dataclass(slots=True)
class Attempt:
    """One execution of a handler, as its own lines tell. `last`: its last sign of life."""

    run: int
    fence: int
    token: str
    pid: int
    main: int
    begin: float
    end: float | None = None
    outcome: str = ""
    last: float = 0.0

    def __post_init__(self) -> None:
        self.last = max(self.last, self.begin, self.end or 0.0)


@dataclass(frozen=True, slots=True)
class Row:
    """The final row of a run."""

    run: int
    token: str
    status: str
    fence: int


@dataclass(frozen=True, slots=True)
class Change:
    """One write of a row's status, in the order of the writes, as the database itself noted it."""

    run: int
    before: str
    after: str
    fence_before: int
    fence: int
    lost: int = 0
    worker: str = ""  # who had it before
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Effect:
    """A row that a handler wrote into the database."""

    run: int
    fence: int


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL of one process; `main` is the main process of its worker.

    `kind`: child, main, both (main process, its watchdog just before), watchdog, self.
    """

    pid: int
    main: int
    kind: str
    at: float


@dataclass(frozen=True, slots=True)
class Stop:
    """SIGSTOP of one process, until SIGCONT. `kind`: child, main, watchdog."""

    pid: int
    main: int
    kind: str
    start: float
    end: float


@dataclass(slots=True)
class History:
    """Everything that the judge may know."""

    intents: Sequence[Intent] = ()
    attempts: Sequence[Attempt] = ()
    rows: Sequence[Row] = ()
    changes: Sequence[Change] = ()
    effects: Sequence[Effect] = ()
    kills: Sequence[Kill] = ()
    stops: Sequence[Stop] = ()
    keys_left: Sequence[str] = ()
    crashes: Sequence[str] = ()  # commands that ended with a traceback
    ttl: float = 2.0
    by_token: dict[str, Intent] = field(default_factory=dict)
    tried: dict[int, list[Attempt]] = field(default_factory=lambda: defaultdict(list))
    changed: dict[int, list[Change]] = field(default_factory=lambda: defaultdict(list))
    _stops: dict[int, list[Stop]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.attempts = self._until_death()
        self.by_token = {intent.token: intent for intent in self.intents}
        for attempt in sorted(self.attempts, key=lambda attempt: attempt.begin):
            self.tried[attempt.run].append(attempt)
        for change in self.changes:
            self.changed[change.run].append(change)
        for stop in self.stops:
            if stop.end - stop.start >= 0.5 * self.ttl:
                self._stops[stop.pid if stop.kind == "child" else stop.main].append(stop)

    def _until_death(self) -> list[Attempt]:
        """An attempt without an end ran until its process was killed; process ids come back with other workers."""
        killed: dict[tuple[int, int], list[float]] = defaultdict(list)
        for kill in self.kills:
            killed[kill.pid, kill.main].append(kill.at)
        return [self._died(attempt, killed[attempt.pid, attempt.main]) for attempt in self.attempts]

    @staticmethod
    def _died(attempt: Attempt, kills: Sequence[float]) -> Attempt:
        ends = [at for at in kills if at >= attempt.begin]
        return replace(attempt, last=max(attempt.last, min(ends))) if ends and attempt.end is None else attempt

    def is_zombie(self, attempt: Attempt) -> bool:
        """Whether the attempt's process, or its worker, was stopped so long that others may have taken over."""
        stops = (*self._stops.get(attempt.pid, ()), *self._stops.get(attempt.main, ()))
        return any(attempt.begin <= stop.end + 0.1 and attempt.last >= stop.start for stop in stops)

    def settled_fence(self, run: int) -> int | None:
        """The fence under which a run became terminal; None while it has not."""
        ends = [change.fence for change in self.changed.get(run, ()) if change.after not in ("READY", "RUNNING")]
        return ends[-1] if ends else None


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: its kind (a key of the verdict), what is wrong, and the runs to look at."""

    kind: str
    text: str
    runs: tuple[int, ...] = ()
