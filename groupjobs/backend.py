"""The backend for `TASKS`: tasks become durable grouped runs. Importing it loads no models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured

from groupjobs import compat, conf, registry
from groupjobs.compat import BaseTaskBackend, InvalidTask, Task, TaskResult, task_enqueued
from groupjobs.errors import Refused
from groupjobs.jobs import Job, RefusedJob, path_of
from groupjobs.policy import suggestion, validate

if TYPE_CHECKING:
    from groupjobs.models import JobRun

P = ParamSpec("P")
R = TypeVar("R")
Call = tuple[Sequence[Any], Mapping[str, Any]]


class GroupJobsBackend(BaseTaskBackend):
    """A full task backend. `QUEUES` of its `TASKS` entry may only narrow those of `GROUPJOBS`."""

    task_class = Job
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, {**params, "QUEUES": params.get("QUEUES") or ()})

    @property
    def queues(self) -> set[str]:
        """The queues that may be enqueued to."""
        known = set(conf.current().queues)
        return known & self._narrowed if self._narrowed else known

    @queues.setter
    def queues(self, names: set[str]) -> None:
        known = conf.current().queues
        for name in names:
            if name not in known:
                hint = suggestion(name, known)
                raise ImproperlyConfigured(
                    f"TASKS[{self.alias!r}]['QUEUES'] names {name!r}, which is not in GROUPJOBS['QUEUES'];{hint}"
                )
        self._narrowed = frozenset(names)

    def validate_task(self, task: Task[..., Any]) -> None:
        """Refused (an InvalidTask, too) unless the task can be enqueued here; touches no models."""
        job = getattr(task, "job_name", "") or path_of(task.func)
        try:
            if not isinstance(task, Job):
                validate(job, {name: getattr(task, name) for name in ("queue_name", "priority", "run_after")})
            if task.queue_name not in self.queues:
                hint = suggestion(task.queue_name, self.queues)
                problem = f"queue_name {task.queue_name!r} is no queue of this backend;{hint}"
                raise Refused(problem, job=job, subject="queue_name")
            if task.run_after is not None:
                registry.checked_moment(job, "run_after", task.run_after)
            super().validate_task(task)
        except (Refused, InvalidTask) as error:
            raise RefusedJob.of(error, job) from None

    def enqueue(self, task: Task[P, R], args: Any, kwargs: Any) -> TaskResult[P, R]:
        """Write one run in the caller's transaction; it is published when that commits."""
        return self.enqueue_many(task, [(args, kwargs)])[0]

    def enqueue_many(self, task: Task[P, R], calls: Sequence[Call]) -> list[TaskResult[P, R]]:
        """Write one run per call, all or nothing; the results are in the same order."""
        from groupjobs.enqueue import enqueue_runs

        self.validate_task(task)
        return [self._enqueued(run, task) for run in enqueue_runs(task, calls)]

    def _enqueued(self, run: JobRun, task: Task[P, R]) -> TaskResult[P, R]:
        from groupjobs.results import result_of

        result = result_of(run, task, self.alias)
        if run.duplicate:
            return result
        compat.send(task_enqueued, type(self), lambda: result)
        return result

    async def aenqueue_many(self, task: Task[P, R], calls: Sequence[Call]) -> list[TaskResult[P, R]]:
        """See `enqueue_many`."""
        return await sync_to_async(self.enqueue_many, thread_sensitive=True)(task, calls)

    def get_result(self, result_id: str) -> TaskResult[..., Any]:
        """The result of a run from its row; TaskResultDoesNotExist for an id that no row has.

        Raises errors.UnknownJob when the row's job is not in this process's code.
        """
        from groupjobs.results import result_of_run

        return result_of_run(result_id, self.alias)
