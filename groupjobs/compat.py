"""django.tasks where Django has it (from 6.0), else its backport: the one place that knows the difference.

Type checkers always see `django.tasks`, whose Task and TaskResult are generic over arguments and result.
"""

from __future__ import annotations

from collections.abc import Callable
from logging import DEBUG, INFO, getLogger
from typing import TYPE_CHECKING, Any, Final

import django
from django.dispatch import Signal

CORE: Final = django.VERSION >= (6, 0)
MODULE: Final = "django.tasks" if CORE else "django_tasks"

if TYPE_CHECKING or CORE:
    from django.tasks import task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist, TaskResultMismatch
    from django.tasks.signals import task_enqueued, task_finished, task_started
else:
    from django_tasks import task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import InvalidTaskError as InvalidTask
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
    from django_tasks.signals import task_enqueued, task_finished, task_started

__all__ = [
    "CORE",
    "MODULE",
    "BaseTaskBackend",
    "InvalidTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
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
