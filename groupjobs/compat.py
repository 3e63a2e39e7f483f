"""django.tasks where Django has it (from 6.0), else its backport: the one place that knows the difference.

Type checkers always see `django.tasks`, whose Task and TaskResult are generic over arguments and result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from logging import DEBUG, INFO, getLogger
from typing import TYPE_CHECKING, Any, Final

import django
from django.dispatch import Signal
from django.utils.module_loading import import_string

CORE: Final = django.VERSION >= (6, 0)
MODULE: Final = "django.tasks" if CORE else "django_tasks"
BACKEND: Final = "groupjobs.backend.GroupJobsBackend"
BUILT_IN: Final = "groupjobs"  # the alias of the backend that serves jobs where TASKS names none

if TYPE_CHECKING or CORE:
    from django.tasks import task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import InvalidTask, InvalidTaskBackend, TaskResultDoesNotExist, TaskResultMismatch
    from django.tasks.signals import task_enqueued, task_finished, task_started
else:
    from django_tasks import task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import InvalidTaskBackendError as InvalidTaskBackend
    from django_tasks.exceptions import InvalidTaskError as InvalidTask
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
    from django_tasks.signals import task_enqueued, task_finished, task_started

if TYPE_CHECKING:
    GenericTask = Task
else:

    class GenericTask(Task):
        """Task, which from Django 6.0 on takes type arguments for type checkers only."""

        def __class_getitem__(cls, _):
            return cls


__all__ = [
    "CORE",
    "MODULE",
    "BaseTaskBackend",
    "GenericTask",
    "InvalidTask",
    "InvalidTaskBackend",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "backend_for",
    "is_own",
    "own_alias",
    "own_aliases",
    "send",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
    "wanted",
]

LEVELS: Final = {id(task_enqueued): DEBUG, id(task_started): INFO, id(task_finished): INFO}

_logger = getLogger(MODULE)


def wanted(signal: Signal, failed: bool = False) -> bool:
    """Whether anybody hears one of the three task signals: a receiver beside Django's own logger, or that one.

    `failed` is for task_finished of a run that failed, which Django logs as an error. Building a
    TaskResult for nobody would cost more than a small run.
    """
    if len(signal.receivers) != 1:
        return bool(signal.receivers)
    return failed or _logger.isEnabledFor(LEVELS[id(signal)])


def send(signal: Signal, sender: type[Any], result: Callable[[], Any], failed: bool = False) -> None:
    """Send a task signal if it is wanted; the result is only made then. A receiver's error is the caller's."""
    if wanted(signal, failed):
        signal.send(sender, task_result=result())


def backend_class() -> Any:
    """The class of groupjobs' backend; imported late, since it imports the jobs that ask for it."""
    return import_string(BACKEND)


def is_own(alias: str) -> bool:
    """Whether this alias of `TASKS` is served by groupjobs' backend or a subclass of it."""
    params = task_backends.settings.get(alias)
    path = params.get("BACKEND") if params else None
    if not isinstance(path, str) or path == BACKEND or path.startswith(MODULE + "."):
        return path == BACKEND
    try:
        found = import_string(path)
    except Exception:  # that backend's own problem, which Django reports when it is used
        return False
    return isinstance(found, type) and issubclass(found, backend_class())


def own_aliases() -> list[str]:
    """The aliases of `TASKS` that groupjobs' backend serves; the default one comes first."""
    return sorted(filter(is_own, task_backends.settings), key=lambda alias: alias != "default")


def own_alias() -> str:
    """The alias of jobs that name none: the one in `TASKS`, else the built-in one."""
    return next(iter(own_aliases()), BUILT_IN)


def backend_for(alias: str) -> Any:
    """The backend of a job: its alias if that is groupjobs' own, else the one that `own_alias` names."""
    if not is_own(alias):
        alias = own_alias()
    return task_backends[alias] if is_own(alias) else _built_in()


@lru_cache(maxsize=1)
def _built_in() -> Any:
    return backend_class()(alias=BUILT_IN, params={})
