"""Rows as django.tasks sees them: a TaskResult from a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from django.utils.module_loading import import_string

from groupjobs import conf, registry
from groupjobs.compat import Task, TaskError, TaskResult, TaskResultDoesNotExist, TaskResultStatus
from groupjobs.errors import Refused, RunAbandoned, RunCancelled, RunFailed, UnknownJob
from groupjobs.lifecycle import ABANDONED, CANCELLED, FAILED, READY, RUNNING, SUCCEEDED
from groupjobs.policy import group_of

if TYPE_CHECKING:
    from groupjobs.models import JobAttempt, JobRun

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_ID: Final = 18  # digits that fit any database's bigint

STATUSES: Final[Mapping[str, TaskResultStatus]] = {
    READY: TaskResultStatus.READY,
    RUNNING: TaskResultStatus.RUNNING,
    SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    FAILED: TaskResultStatus.FAILED,
    ABANDONED: TaskResultStatus.FAILED,
    CANCELLED: TaskResultStatus.FAILED,
}
COPIED: Final = (  # options that a row keeps under the same name
    "priority",
    "order",
    "max_attempts",
    "on_retry",
    "max_losses",
    "after_failure",
    "atomic",
    "time_limit",
    "soft_time_limit",
)


def result_of(run: JobRun, task: Task[P, R], backend: str, history: Sequence[JobAttempt] = ()) -> TaskResult[P, R]:
    """The result of a run; `history` is the log of this life's attempts that did not succeed."""
    result: TaskResult[P, R] = TaskResult(
        task=task,
        id=str(run.pk),
        status=STATUSES[run.status],
        enqueued_at=_moment(run.enqueued_at),
        started_at=run.started_at,
        finished_at=run.finished_at,
        last_attempted_at=run.last_attempted_at,
        args=run.args,
        kwargs=run.kwargs,
        backend=backend,
        errors=list(_errors(run, history)),
        worker_ids=_workers(run, history),
    )
    object.__setattr__(result, "_return_value", run.result)
    return result


def result_of_run(result_id: object, backend: str | None = None) -> TaskResult[..., Any]:
    """The result of the run with this id, from its row, for the backend of this alias or the job's own.

    Raises TaskResultDoesNotExist for an id that no row has, UnknownJob when the row's code is not here.
    """
    run = _run(str(result_id))
    task = task_of(run, backend)
    history = list(run.attempt_log.filter(life=run.life).order_by("fence")) if run.attempts else ()
    return result_of(run, task, task.backend, history)


def results_of_runs(runs: Sequence[int]) -> dict[int, TaskResult[..., Any]]:
    """The results of many runs by id with two queries; runs whose row or code is not here are left out."""
    from groupjobs.models import JobAttempt, JobRun

    database = conf.current().database
    rows = list(JobRun.objects.using(database).filter(pk__in=runs))
    tried = [row.pk for row in rows if row.attempts]
    log: dict[int, list[JobAttempt]] = {}
    for attempt in JobAttempt.objects.using(database).filter(run_id__in=tried).order_by("fence") if tried else ():
        log.setdefault(attempt.run_id, []).append(attempt)
    return {row.pk: result for row in rows if (result := _known(row, log.get(row.pk, ()))) is not None}


def _known(run: JobRun, log: Sequence[JobAttempt]) -> TaskResult[..., Any] | None:
    try:
        task = task_of(run)
    except UnknownJob:
        return None
    return result_of(run, task, task.backend, [attempt for attempt in log if attempt.life == run.life])


def _run(result_id: str) -> JobRun:
    from groupjobs.models import JobRun

    if result_id.isascii() and result_id.isdigit() and len(result_id) <= LONGEST_ID:
        run = JobRun.objects.using(conf.current().database).filter(pk=int(result_id)).first()
        if run is not None:
            return run
    raise TaskResultDoesNotExist(result_id)


def _moment(value: Any) -> datetime | None:
    """None while the row's default has not been read back from the database."""
    return value if isinstance(value, datetime) else None


def _workers(run: JobRun, history: Sequence[JobAttempt]) -> list[str]:
    """One worker per attempt of this life, the last one last."""
    known = [attempt.worker for attempt in history if attempt.fence != run.fence] + [run.worker]
    return ([known[0]] * run.attempts + known)[-run.attempts :] if run.attempts else []


def _errors(run: JobRun, history: Sequence[JobAttempt]) -> Iterable[TaskError]:
    """One error per failed attempt; what ended the run comes last."""
    for attempt in history:
        if attempt.outcome in ("failed", "timed_out"):
            yield _error(attempt.error_class, attempt.traceback or attempt.message)
    if run.status == ABANDONED:
        yield _error(_path(RunAbandoned), _said(run))
    elif run.status == CANCELLED:
        yield _error(_path(RunCancelled), _said(run))
    elif run.status == FAILED and not any(attempt.fence == run.fence for attempt in history):
        error = run.error if isinstance(run.error, dict) else {}
        yield _error(str(error.get("class", "")), str(error.get("traceback") or error.get("message") or run.reason))


def _said(run: JobRun) -> str:
    message = run.error.get("message") if isinstance(run.error, dict) else ""
    return str(message or run.reason)


def _error(path: str, traceback: str) -> TaskError:
    return TaskError(exception_class_path=path if _importable(path) else _path(RunFailed), traceback=traceback)


def _path(error: type[BaseException]) -> str:
    return f"{error.__module__}.{error.__qualname__}"


def _importable(path: str) -> bool:
    try:
        found = import_string(path)
    except Exception:  # whatever that module does when it is imported
        return False
    return isinstance(found, type) and issubclass(found, BaseException)


def task_of(run: JobRun, backend: str | None = None) -> Any:
    """The task of a row, with the options that the row keeps; UnknownJob when its code is not here."""
    handler = registry.resolve(run.job)
    if handler is None:
        raise UnknownJob(f"Run {run.pk} is of the job {run.job!r}, which this process does not know.")
    changes: dict[str, Any] = {name: getattr(run, name) for name in COPIED}
    changes |= {
        "queue_name": run.queue,
        "backend": backend or handler.task.backend,
        "literal_group": _literal(run, handler),
    }
    if run.yields:
        changes["run_after"] = run.run_after
    if run.labels != dict(handler.policy.labels):
        changes["labels"] = run.labels
    return _copy(handler.task, changes)


def _literal(run: JobRun, handler: registry.Handler) -> str | None:
    """The group that `using()` gave: the one that the job's own options do not make."""
    try:
        made: str | None = group_of(handler.policy, handler.name, handler.signature, run.args, run.kwargs)
    except Refused:
        made = None
    return None if made == run.group else str(run.group)


def _copy(task: Any, changes: Mapping[str, Any]) -> Any:
    """The task with changed fields, unchecked: what a row says may be out of what is allowed today."""
    copy = object.__new__(type(task))
    for option in fields(task):
        value = changes[option.name] if option.name in changes else getattr(task, option.name)
        object.__setattr__(copy, option.name, value)
    return copy
