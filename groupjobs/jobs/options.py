"""The types of a job's options, for type checkers and for the hints of error messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

Seconds = float | timedelta
Key = str | Callable[..., str | None]
Call = Mapping[str, Any] | tuple[Sequence[Any], Mapping[str, Any]]


class Common(TypedDict, total=False):
    """Options of a job that one call may override. Durations are seconds or timedeltas."""

    order: int
    max_attempts: int
    on_retry: Literal["block", "yield"]
    max_losses: int
    after_failure: Literal["continue", "hold", "cancel"]
    atomic: bool
    time_limit: Seconds | None
    soft_time_limit: Seconds | None
    expires: Seconds | datetime | None
    dedup: Key | None
    on_duplicate: Literal["skip", "replace", "coalesce"]
    labels: Mapping[str, Any]


class Overrides(Common, total=False):
    """What `using()` takes. `group` is the finished text, None for ungrouped."""

    queue_name: str | None
    priority: int | None
    run_after: datetime | None
    backend: str | None
    group: str | None


class Options(Common, total=False):
    """What `@job` takes."""

    name: str
    aliases: str | Iterable[str]
    backend: str
    queue_name: str
    priority: int
    group: Key | None
    retry_on: type[Exception] | Iterable[type[Exception]]
    backoff: Seconds | Sequence[Seconds] | Callable[[int], Seconds] | None
    on_abandoned: Callable[[Any, str], object] | None
