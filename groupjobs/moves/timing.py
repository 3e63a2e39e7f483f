"""Carry out the end of an attempt that lasted longer than its hard time limit: a failure, and no loss."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from groupjobs import ledger, policy, registry
from groupjobs.errors import TimedOut
from groupjobs.ledger import Attempt
from groupjobs.lifecycle import REQUESTED, RUNNING, Seen
from groupjobs.moves.ending import end, finish
from groupjobs.moves.telling import announce
from groupjobs.signals import attempt_failed, run_failed, run_retried

if TYPE_CHECKING:
    from groupjobs.models import JobRun

UNKNOWN: Final = 60.0  # seconds of back-off where this process does not know the job


_CLASS: Final = f"{TimedOut.__module__}.{TimedOut.__qualname__}"


def time_out(run: Seen | JobRun) -> tuple[str, float]:
    """One try of this RUNNING run is used up: "retried" and the seconds until the next, "ended", or "" (it has moved).

    The watchdog has killed its process; the row is moved under exactly the fence that was observed.
    """
    message = f"The run lasted longer than its time limit of {run.time_limit or 0:g} s; its process was killed."
    log = Attempt(run.id, run.fence, "timed_out", run.life, _CLASS, message, worker=run.worker)
    changes: dict[str, Any] = {"failed": True, "tried": True, "clear_alone": True}
    changes["error"] = {"class": _CLASS, "message": message, "traceback": ""}
    facts = {"run": run.id, "queue": run.queue, "job": run.job, "group": run.group, "fence": run.fence}
    failed = partial(announce, attempt_failed, **facts, attempt=run.attempts + 1, exception=TimedOut(message))
    facts["error"] = _CLASS
    if run.failures + 1 >= run.max_attempts:
        if not finish(run, "fail", log, **changes):
            return "", 0.0
        failed()
        announce(run_failed, **facts, seconds=run.time_limit, reason="")
        return "ended", 0.0
    delay = _delay(run)
    with ledger.one_commit():
        moved = ledger.transit(
            "retry", run.id, RUNNING, run.fence, delay=delay, yields=run.on_retry == "yield", asked=False, **changes
        )
        ledger.record([log] if moved else [])
    if moved:
        failed()
        announce(run_retried, **facts, delay=delay)
        return "retried", delay
    return ("ended", 0.0) if end(run, "cancel", REQUESTED) else ("", 0.0)


def _delay(run: Seen | JobRun) -> float:
    handler = registry.resolve(run.job)
    return policy.retry_delay(handler.policy, run.failures + 1) if handler else UNKNOWN
