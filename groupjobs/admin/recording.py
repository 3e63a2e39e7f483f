"""The audit log: what a person did with which runs, as entries of Django's own log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest

from groupjobs.admin.mending import rows_of
from groupjobs.models import JobGroup, JobRun


def record_runs(request: HttpRequest, runs: Sequence[int], words: dict[int, str], action: str) -> None:
    """One entry for each run that was changed: the action and what became of the run."""
    user: Any = request.user
    content_type = ContentType.objects.get_for_model(JobRun)
    entries = [
        LogEntry(
            user_id=user.pk,
            content_type_id=content_type.pk,
            object_id=str(row.pk),
            object_repr=str(row)[:200],
            action_flag=CHANGE,
            change_message=f"{action}: {words[row.pk]}",
        )
        for row in rows_of(runs)
    ]
    LogEntry.objects.bulk_create(entries, batch_size=500)


def record_queue(request: HttpRequest, name: str, message: str) -> None:
    """An entry about a whole queue or group, which need not have a row."""
    user: Any = request.user
    LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(JobGroup),
        object_id=name[:200],
        object_repr=name[:200],
        action_flag=CHANGE,
        change_message=message,
    )
