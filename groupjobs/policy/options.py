"""The options of a job: their defaults, and the check of each value's type and range."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Final

from groupjobs.errors import Refused
from groupjobs.policy.rules import RULES, seconds

logger = logging.getLogger("groupjobs")

Backoff = float | tuple[float, ...] | Callable[[int], float | timedelta]

FALLBACK_PAUSE: Final = 60.0  # seconds, where a job's backoff gives none


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The normalised options of a job, or of one `using()` of it. Durations are in seconds.

    `queue_name`: a key of `GROUPJOBS["QUEUES"]`.
    `priority`: how far ahead of other groups, a second for each point; inside a group the line decides.
    `run_after`: not before this aware moment. `using()` only.
    `group`: a template over the arguments, or a callable of them that answers None for no group.
    `literal_group`: what `using(group=...)` gave, '' for ungrouped.
    `order`: the place in the line of the group; smaller first, equal ones as enqueued.
    `max_attempts`: how many tries a life of the run has.
    `retry_on`: the exceptions after which it is tried again.
    `backoff`: the pause before the next try, by the number of failures so far.
    `on_retry`: whether the group waits meanwhile ("block") or passes ("yield").
    `max_losses`: how many lost attempts a life of the run survives.
    `after_failure`: what becomes of the rest of the group when it ends as FAILED or ABANDONED.
    `atomic`: the handler's writes and the end of its run are one commit.
    `time_limit`: after so long the process is killed (prefork only).
    `soft_time_limit`: after so long `SoftTimeLimit` is raised in the handler.
    `expires`: seconds from the enqueue, or a moment; a run that has not begun by then ends as CANCELLED.
    `dedup`: a template or callable; one live run for each key of the job.
    `on_duplicate`: what else an `enqueue` does whose key is taken.
    `on_abandoned`: called as (run, reason) when the queue gave the run up, until it returns.
    `labels`: JSON values that go with the run, to be searched for.
    `takes_context`: the handler's first argument is the context.
    """

    queue_name: str = "default"
    priority: int = 0
    run_after: datetime | None = None
    group: str | Callable[..., Any] | None = None
    literal_group: str | None = None
    order: int = 0
    max_attempts: int = 1
    retry_on: tuple[type[Exception], ...] = (Exception,)
    backoff: Backoff = FALLBACK_PAUSE
    on_retry: str = "block"
    max_losses: int = 2
    after_failure: str = "continue"
    atomic: bool = False
    time_limit: float | None = None
    soft_time_limit: float | None = None
    expires: float | datetime | None = None
    dedup: str | Callable[..., Any] | None = None
    on_duplicate: str = "skip"
    on_abandoned: Callable[..., Any] | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    takes_context: bool = False


OPTIONS: Final = ("name", "aliases", *(option.name for option in fields(Policy) if option.name != "literal_group"))

# Read from the code by the worker, so they belong to the job and not to one call of it.
WORKER_OPTIONS: Final = frozenset({"retry_on", "backoff", "on_abandoned", "takes_context", "name", "aliases"})


def validate(job: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options normalised (lists to tuples, durations to seconds), or Refused naming option and job."""
    normal = {name: _checked(job, name, value) for name, value in options.items()}
    hard, soft = normal.get("time_limit"), normal.get("soft_time_limit")
    if hard is not None and soft is not None and soft >= hard:
        problem = f"soft_time_limit ({soft:g} s) must be shorter than time_limit ({hard:g} s)"
        raise Refused(problem, job=job, subject="soft_time_limit")
    return normal


def _checked(job: str, name: str, value: Any) -> Any:
    rule = RULES.get(name)
    if rule is None:
        raise Refused(f"there is no option {name!r};{suggestion(name, OPTIONS)}", job=job, subject=name)
    try:
        return rule(value)
    except ValueError as error:
        name = name.removeprefix("literal_")
        given = f", not {_short(value)}" if str(error).startswith("must") else ""
        raise Refused(f"{name} {error}{given}", job=job, subject=name) from None


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else shown[:100] + "..."


def suggestion(name: object, known: Iterable[str]) -> str:
    """' did you mean ...?' for a name that is close to a known one, else the known ones; '' when there is none."""
    names = sorted(known)
    close = get_close_matches(str(name), names, n=1) or get_close_matches(str(name).lower(), names, n=1)
    if close:
        return f" did you mean {close[0]!r}?"
    return f" known are {', '.join(names)}" if names else ""


def retry_delay(policy: Policy, failures: int) -> float:
    """Seconds to wait before the next try, after this many failed ones (from 1).

    A sequence's last value serves all later failures. A callable that raises or answers no duration
    is logged, and a minute taken instead.
    """
    backoff = policy.backoff
    if isinstance(backoff, tuple):
        backoff = backoff[min(failures, len(backoff)) - 1]
    try:
        return seconds(backoff(failures) if callable(backoff) else backoff)
    except Exception:
        logger.exception("The backoff %r gave no duration after failure %d.", backoff, failures)
        return FALLBACK_PAUSE
