"""What is seen of runs from outside: their rows, their attempts, and what their handlers said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupjobs.compat import TaskResult
from groupjobs.models import JobRun

Said = Callable[[], list[list[Any]]]


def row(result: TaskResult[..., Any]) -> JobRun:
    """Its row."""
    return JobRun.objects.get(pk=result.id)


def outcomes(run: JobRun) -> list[str]:
    """How its attempts ended, in their order."""
    return list(run.attempt_log.order_by("fence").values_list("outcome", flat=True))


def ended(*results: TaskResult[..., Any]) -> bool:
    """Whether all of these have ended."""
    return all(row(result).finished_at for result in results)


def begins(said: Said) -> list[str]:
    """The labels of the handlers that began, in their order."""
    return [line[1] for line in said() if line[0] == "begins"]
