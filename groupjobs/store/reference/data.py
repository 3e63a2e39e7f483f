"""What the reference store remembers."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

PAUSE = 500


@dataclass
class Known:
    """A run's entry: waiting in its line or in `scheduled`, or leased to `consumer`."""

    run: int
    group: str
    order: int = 0
    life: int = 1
    fence: int = 0
    alone: int = 0
    priority: int = 0
    at: int | None = None
    scheduled: bool = False
    consumer: str = ""
    worker: str = ""
    again: int = 0
    healed: int = 0
    interrupted: bool = False
    overdue: int = 0
    cancel: int = 0  # 2: by force

    @property
    def place(self) -> tuple[int, int]:
        """Its place in the line."""
        return self.order, self.run


@dataclass(frozen=True)
class Rule:
    """A group's hold and limits; `rate` is tokens per ms."""

    limit: int
    rate: tuple[int, float] | None
    version: int = 0
    held: bool = False


@dataclass
class Registered:
    """A consumer: number of its last step, clock when last seen, epoch that it was confirmed in."""

    number: int
    pid: int
    seen: int
    epoch: str
    worker: str


@dataclass
class Epoch:
    """`server` stands for the run_id."""

    server: str
    number: int
    since: int
    open: bool = False


@dataclass
class Bells:
    """Outstanding bells, when they rang, and how long an answer is waited for."""

    outstanding: int = 0
    at: int = 0
    pause: int = PAUSE


@dataclass
class Data:
    """Everything that a flush forgets."""

    epoch: Epoch | None = None
    counter: int = 0
    clock: int = 0
    last: int | None = None
    entries: dict[int, Known] = field(default_factory=dict)
    lines: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    held: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    leases: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    ready: dict[str, int] = field(default_factory=dict)
    later: dict[str, int] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    slots: dict[str, tuple[int, bool, int]] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=dict)
    consumers: dict[str, Registered] = field(default_factory=dict)
    dead: dict[str, bool] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)
    tokens: dict[str, float] = field(default_factory=dict)
    bells: Bells = field(default_factory=Bells)
    stats: Counter[str] = field(default_factory=Counter)
    turns: dict[str, int] = field(default_factory=dict)
    swept: tuple[int, int] | None = None
