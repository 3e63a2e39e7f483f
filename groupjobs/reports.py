"""Report abandonments: to the job's `on_abandoned` and the `run_abandoned` signal, at least once.

The mark on the row is set only after every callback has returned. A hook that raises or hangs is
called again later, with growing pauses; after `PARKED` tries the report waits for a person.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from django.db import connections, transaction

from groupjobs import ledger, lifecycle, registry
from groupjobs.signals import run_abandoned

if TYPE_CHECKING:
    from groupjobs.models import JobRun

logger = logging.getLogger("groupjobs")

PARKED: Final = 10  # failed reports after which a person has to look
FIRST_PAUSE: Final = 5.0  # seconds until a report that failed or hangs is tried again; doubles
LONGEST_PAUSE: Final = 3600.0
MOST_THREADS: Final = 8  # hooks that hang keep a thread each; more of them wait for the next sweep

_slots = threading.BoundedSemaphore(MOST_THREADS)


def deliver(queue: str, runs: Sequence[int] | None = None, wait: float = 10.0) -> int:
    """Report what is due of a queue, or of these runs; answers how many were acknowledged in time.

    Hooks run in threads of their own; after `wait` seconds the call returns and they go on. A process
    that does not know the job leaves its report to one that does.
    """
    acknowledged: list[int] = []
    started: list[threading.Thread] = []
    until = time.monotonic() + wait
    for run in _due(queue, runs):
        if not _slots.acquire(timeout=max(0.0, until - time.monotonic())):
            break
        started += _start(run, acknowledged)
    for thread in started:
        thread.join(max(0.0, until - time.monotonic()))
    return len(acknowledged)


def _due(queue: str, runs: Sequence[int] | None) -> Iterator[JobRun]:
    """Runs whose report is due and whose hooks are known here. Each must be claimed before the next is asked for."""
    unknown: set[str] = set()
    while page := ledger.unreported(queue, PARKED, runs, unknown):
        unknown |= {run.job for run in page if not knows(run)}
        yield from (run for run in page if knows(run))


def deliver_here(queue: str, runs: Sequence[int] | None = None) -> int:
    """As `deliver`, one after the other in this thread, on its own connection. For tests."""
    acknowledged: list[int] = []
    for run in _due(queue, runs):
        if ledger.claim_report(run, FIRST_PAUSE):
            _report_once(run, acknowledged)
    return len(acknowledged)


def soon(queue: str, runs: Sequence[int]) -> None:
    """Report these runs without keeping the caller; what does not finish is left to the sweep."""
    threading.Thread(target=_deliver_and_close, args=(queue, runs), name="groupjobs-reports", daemon=True).start()


def _deliver_and_close(queue: str, runs: Sequence[int]) -> None:
    try:
        deliver(queue, runs)
    except ledger.CONNECTION_ERRORS:
        logger.warning("Abandonments of %s are reported by the next sweep: the database does not answer.", queue)
    finally:
        connections.close_all()


def knows(run: JobRun) -> bool:
    """Whether this process may report it: it has the job's code, or nobody is known to."""
    return run.reason == lifecycle.UNKNOWN_JOB or registry.resolve(run.job) is not None


def _start(run: JobRun, acknowledged: list[int]) -> list[threading.Thread]:
    """Claim the report, so that no other process makes it now, and call the hooks in a thread. Takes a slot over."""
    pause = min(FIRST_PAUSE * 2.0**run.report_attempts, LONGEST_PAUSE)
    if not ledger.claim_report(run, pause):
        _slots.release()
        return []
    thread = threading.Thread(target=_report, args=(run, acknowledged), name=f"groupjobs-report-{run.pk}", daemon=True)
    thread.start()
    return [thread]


def _report(run: JobRun, acknowledged: list[int]) -> None:
    try:
        _report_once(run, acknowledged)
    finally:
        _slots.release()
        connections.close_all()


def _report_once(run: JobRun, acknowledged: list[int]) -> None:
    try:
        if _call_hooks(run):
            acknowledged.append(run.pk)
    except Exception:
        logger.exception("The report of abandoned run %s failed; it is tried again later.", run.pk)


def _call_hooks(run: JobRun) -> bool:
    hook = _hook_of(run)
    if getattr(hook, "groupjobs_atomic", False):
        with ledger.one_commit():
            _tell(run, hook)
            made = ledger.acknowledge_report(run)
            if not made:  # another process has made it, or the run has a new life
                transaction.set_rollback(True, using=ledger.alias())
            return made
    _tell(run, hook)
    return ledger.acknowledge_report(run)


def _hook_of(run: JobRun) -> Callable[..., object] | None:
    handler = registry.resolve(run.job)
    return handler.policy.on_abandoned if handler else None


def _tell(run: JobRun, hook: Callable[..., object] | None) -> None:
    if hook is not None:
        hook(run, run.reason)
    for receiver, answer in run_abandoned.send_robust(type(run), run=run, reason=run.reason):
        if isinstance(answer, Exception):
            raise RuntimeError(f"Receiver {receiver} of run_abandoned raised") from answer
