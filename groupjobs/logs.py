"""Log lines about runs, groups and recoveries: receivers of `groupjobs.signals`, all to the logger `groupjobs.runs`.

Each record carries what it is about as attributes (`extra`): run_id, group, queue, job, attempt, fence and whatever
the signal tells besides. Where a level is off, nothing is built for its lines.
"""

from __future__ import annotations

from collections.abc import Callable
from logging import DEBUG, ERROR, INFO, WARNING
from typing import Any, Final

from django.dispatch import Signal

from groupjobs import signals
from groupjobs.moves import telling

Facts = dict[str, Any]
ABOUT: Final = ("run_id", "group", "queue", "job", "attempt", "fence")
OF_RUN: Final = ("id", "group", "queue", "job", "fence")

LINES: Final[tuple[tuple[Signal, int, str], ...]] = (
    (signals.run_begun, DEBUG, "Run %(run_id)s of %(job)s begins attempt %(attempt)s on %(worker)s"),
    (signals.run_succeeded, DEBUG, "Run %(run_id)s of %(job)s succeeded after %(seconds).3f s"),
    (signals.attempt_failed, ERROR, "%(job)s (run %(run_id)s, attempt %(attempt)s) failed"),
    (signals.run_retried, INFO, "Run %(run_id)s of %(job)s is tried again in %(delay).1f s"),
    (signals.run_failed, WARNING, "Run %(run_id)s of %(job)s is FAILED: %(error)s"),
    (signals.run_lost, WARNING, "Run %(run_id)s of %(job)s was lost with worker %(worker)s"),
    (signals.run_cancelled, INFO, "Run %(run_id)s of %(job)s is CANCELLED: %(reason)s"),
    (signals.run_condemned, ERROR, "Run %(run_id)s of %(job)s is ABANDONED: %(reason)s"),
    (signals.group_held, WARNING, "%(what)s is held%(why)s"),
    (signals.group_resumed, INFO, "%(what)s is open again%(why)s"),
    (signals.queue_recovered, INFO, "Recovered queue %(queue)s: %(said)s"),
)


def connect() -> None:
    """Listen to the signals; safe to call again."""
    for signal, level, text in LINES:
        telling.LOG_LEVELS[id(signal)] = level
        signal.connect(_receiver(level, text), weak=False, dispatch_uid="groupjobs.logs")


def _receiver(level: int, text: str) -> Callable[..., None]:
    def write(**told: Any) -> None:
        if not telling.runs_log.isEnabledFor(level):
            return
        facts, error = facts_of(told), told.get("exception")
        try:
            telling.runs_log.log(level, text, facts, exc_info=error, extra=facts)
        except Exception:  # of an exception at which nobody can look
            telling.runs_log.log(level, f"{text}: {type(error).__qualname__}", facts, extra=facts)

    return write


def facts_of(told: Facts) -> Facts:
    """What a signal said, flat: a run as its id, group, queue, job and fence."""
    run = told.get("run")
    flat = {name: value for name, value in told.items() if name not in ("signal", "sender", "run", "exception")}
    if run is not None and not isinstance(run, int):
        flat = {name: getattr(run, name) for name in OF_RUN} | flat
        flat["run_id"] = flat.pop("id")
    elif run is not None:
        flat["run_id"] = run
    if "by" in flat:
        flat["what"] = (
            f"Group {flat['group']!r} of queue {flat['queue']}" if flat["group"] else f"Queue {flat['queue']}"
        )
        flat["why"] = (f": {flat['reason']}" if flat["reason"] else "") + (f" (by {flat['by']})" if flat["by"] else "")
    if "counts" in flat:
        flat["said"] = ", ".join(f"{number} {word}" for word, number in flat["counts"].items() if number)
    return dict.fromkeys(ABOUT) | flat
