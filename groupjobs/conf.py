"""The settings: the dict `GROUPJOBS` of the project, checked, with defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from groupjobs.lifecycle import ABANDONED, CANCELLED, FAILED, SUCCEEDED, TERMINAL
from groupjobs.policy import suggestion

DAY: Final = 86400.0
LONGEST: Final = 100 * 365 * DAY

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue's settings.

    `consumers`: at most so many at once over all workers, None for the pool slots of the live workers
    that serve it. `celery_queue`: where bells are sent, None for Celery's default queue.
    `group_concurrency`: consumers that may serve one group at once. `rate`: (n, seconds) is a bucket
    of n tokens for each group, of which one comes back every seconds/n; None for no limit.
    """

    name: str
    consumers: int | None = None
    celery_queue: str | None = None
    group_concurrency: int = 1
    rate: tuple[int, float] | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked `GROUPJOBS`; names are those of its keys in lower case, durations are in seconds.

    `redis`: the alias of `CACHES` that django-redis serves, or a URL, or the dotted path of a callable
    that makes a client of redis-py from `socket_timeout`, `socket_connect_timeout` and `retry`.
    `prefix`: what every key in Redis begins with.
    `database`: the alias of `DATABASES` that has the rows.
    `queues`: each queue's name and options; a list of names gives each the defaults.
    `worker_ttl`: a worker that has not beaten for so long, by the queue's own clock, is dead.
    `commit_interval`: outcomes of short runs are committed together for at most so long.
    `sweep_interval`: the time between two full sweeps of a queue, over all workers.
    `unknown_job_grace`: so long after its enqueue a run waits for a worker that knows its job and takes
    its arguments; then it is ABANDONED.
    `retention`: how long ended runs are kept, by status; None keeps. What is not named has its default.
    `celery_app`: dotted path of the Celery app that rings, None for the one given to `install`.
    `masked`: names of arguments and labels whose values the admin never shows.
    `consumer_seconds`: a consumer returns to Celery after so long, so that Celery can recycle the process.
    `metrics`: workers count what becomes of runs, by job, for Prometheus.
    `tracing`: enqueuing and attempts are spans of OpenTelemetry.
    """

    redis: str = "default"
    prefix: str = "groupjobs"
    database: str = "default"
    queues: Mapping[str, Queue] = field(default_factory=lambda: MappingProxyType({"default": Queue("default")}))
    worker_ttl: float = 15.0
    commit_interval: float = 0.020
    sweep_interval: float = 300.0
    unknown_job_grace: float = 3600.0
    retention: Mapping[str, float | None] = field(default_factory=lambda: RETENTION)
    celery_app: str | None = None
    masked: tuple[str, ...] = ()
    consumer_seconds: float = 30.0
    metrics: bool = False
    tracing: bool = False

    def queue(self, name: str) -> Queue:
        """The settings of a queue; the defaults for one that rows name and the settings do not, or no more."""
        return self.queues.get(name) or Queue(name)


RETENTION: Final[Mapping[str, float | None]] = MappingProxyType(
    {SUCCEEDED: 7 * DAY, CANCELLED: 7 * DAY, FAILED: 90 * DAY, ABANDONED: None}
)


class _Wrong(Exception):
    """What a value must be."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise _Wrong("must be a non-empty text")
    return value


def _optional(rule: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else rule(value)


def _prefix(value: Any) -> str:
    if "{" in _text(value) or "}" in value:
        raise _Wrong("must hold no braces, which mark the part of a key that Redis Cluster hashes")
    return str(value)


def _seconds(least: float, most: float = LONGEST) -> Callable[[Any], float]:
    def rule(value: Any) -> float:
        number = value.total_seconds() if isinstance(value, timedelta) else value
        if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number <= most:
            raise _Wrong(f"must be seconds from {least:g} to {most:g}, or a timedelta")
        return float(number)

    return rule


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000:
        raise _Wrong("must be a whole number from 1 to 1,000,000")
    return value


def _rate(value: Any) -> tuple[int, float]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise _Wrong("must be a pair (number of runs, seconds)")
    return _count(value[0]), _seconds(0.001)(value[1])


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("must be True or False")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise _Wrong("must be a list of argument names")
    return tuple(_text(item) for item in value)


def _retention(value: Any) -> Mapping[str, float | None]:
    if not isinstance(value, Mapping):
        raise _Wrong("must be a dict of statuses and seconds, a timedelta, or None to keep")
    upper = {str(status).upper(): kept for status, kept in value.items()}
    for status in upper:
        if status not in TERMINAL:
            raise _Wrong(f"has the unknown status {status!r};{suggestion(status, TERMINAL)}")
    return MappingProxyType({**RETENTION, **{status: _optional(_seconds(0))(kept) for status, kept in upper.items()}})


QUEUE_RULES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "consumers": _optional(_count),
    "celery_queue": _optional(_text),
    "group_concurrency": _count,
    "rate": _optional(_rate),
}


def _queue(name: Any, value: Any) -> Queue:
    if not isinstance(name, str) or not 0 < len(name) <= 100 or not name.isprintable() or set(name) & set("{}"):
        raise _Wrong(f"names a queue {name!r}, and names are printable text of up to 100 characters without braces")
    if not isinstance(value, Mapping):
        raise _Wrong(f"[{name!r}] must be a dict of options, which may be empty")
    return Queue(name, **_checked(f"GROUPJOBS['QUEUES'][{name!r}]", value, QUEUE_RULES))


def _queues(value: Any) -> Mapping[str, Queue]:
    named = {name: {} for name in value} if isinstance(value, list | tuple | set | frozenset) else value
    if not isinstance(named, Mapping) or not named:
        raise _Wrong("must be a dict of at least one queue name and its options")
    return MappingProxyType({name: _queue(name, options) for name, options in named.items()})


RULES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "REDIS": _text,
    "PREFIX": _prefix,
    "DATABASE": _text,
    "QUEUES": _queues,
    "WORKER_TTL": _seconds(0.5, DAY),
    "COMMIT_INTERVAL": _seconds(0, 10),
    "SWEEP_INTERVAL": _seconds(1),
    "UNKNOWN_JOB_GRACE": _seconds(0),
    "RETENTION": _retention,
    "CELERY_APP": _optional(_text),
    "MASKED": _names,
    "CONSUMER_SECONDS": _seconds(0.1, DAY),
    "METRICS": _flag,
    "TRACING": _flag,
}


def _checked(where: str, given: Mapping[Any, Any], rules: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in rules:
            raise ImproperlyConfigured(f"{where} has no key {key!r};{suggestion(key, rules)}")
        try:
            values[key] = rules[key](value)
        except _Wrong as wrong:
            raise ImproperlyConfigured(f"{where}[{key!r}] {wrong}, not {value!r}.") from None
    return values


def checked_limits(concurrency: Any, rate: Any) -> tuple[int | None, tuple[int, float] | None]:
    """Limits for one group, by the rules for those of a queue; ValueError says which of them is wrong."""
    checked: list[Any] = []
    for name, rule, value in (("concurrency", _count, concurrency), ("rate", _rate, rate)):
        try:
            checked.append(_optional(rule)(value))
        except _Wrong as wrong:
            raise ValueError(f"{name} {wrong}, or None for the queue's, not {value!r}.") from None
    return checked[0], checked[1]


def load(given: Any) -> Settings:
    """The settings that this dict gives; ImproperlyConfigured names the key and what it must be."""
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured(f"GROUPJOBS must be a dict, not {given!r}.")
    values = _checked("GROUPJOBS", given, RULES)
    return Settings(**{key.lower(): value for key, value in values.items()})


_current: Settings | None = None


def current() -> Settings:
    """The project's settings, read once; read again after Django's `setting_changed`."""
    global _current
    if _current is None:
        _current = load(getattr(settings, "GROUPJOBS", {}))
    return _current


def _forget(*, setting: str, **_: Any) -> None:
    global _current
    if setting == "GROUPJOBS":
        _current = None


setting_changed.connect(_forget, dispatch_uid="groupjobs.conf")
