"""Results: rows of every status as django.tasks sees them, and waiting for one."""

from __future__ import annotations

import json
import pickle
import threading
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from groupjobs import errors, job, wait
from groupjobs.compat import (
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
)
from groupjobs.models import JobAttempt, JobRun

pytestmark = [pytest.mark.api, pytest.mark.django_db]


@job(group="aircraft:{tail}", max_attempts=5)
def log_leg(tail: str) -> int:
    return 0


@job
def anything(*args: Any, **kwargs: Any) -> None: ...


@pytest.mark.parametrize(
    "wrong", ["123456", "", "abc", "-1", "1.5", "0x1", "٣", "²", "9" * 40, "1" * 19, None, 5.5, "1\x00"]
)
def test_an_unknown_id_does_not_exist(wrong: Any) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        log_leg.get_result(wrong)
    with pytest.raises(TaskResultDoesNotExist):
        async_to_sync(log_leg.aget_result)(wrong)


def test_the_result_of_another_job_does_not_match() -> None:
    result = anything.enqueue()
    with pytest.raises(TaskResultMismatch):
        log_leg.get_result(result.id)


def test_a_row_whose_job_is_gone_says_so() -> None:
    result = anything.enqueue()
    JobRun.objects.filter(pk=result.id).update(job="app.jobs.gone")
    with pytest.raises(errors.UnknownJob, match=r"'app\.jobs\.gone', which this process does not know"):
        task_backends["default"].get_result(result.id)


def ended(enqueued: Any, status: str, **columns: Any) -> Any:
    now = timezone.now()
    columns = {"worker": "host:1:abc", "attempts": 1, "started_at": now, "last_attempted_at": now, **columns}
    finished = None if status in ("READY", "RUNNING") else now
    JobRun.objects.filter(pk=enqueued.id).update(status=status, finished_at=finished, **columns)
    enqueued.refresh()
    return enqueued


def test_a_running_run() -> None:
    result = ended(log_leg.enqueue("N1"), "RUNNING")
    assert result.status == TaskResultStatus.RUNNING
    assert result.worker_ids == ["host:1:abc"]
    assert result.attempts == 1
    assert result.started_at == result.last_attempted_at != None  # noqa: E711
    assert not result.is_finished


@pytest.mark.parametrize("value", [42, None, {"a": [1]}, False, ""])
def test_a_succeeded_run(value: Any) -> None:
    result = ended(log_leg.enqueue("N1"), "SUCCEEDED", result=value)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.is_finished
    assert result.return_value == value
    assert result.finished_at >= result.started_at
    assert result.errors == []


def test_a_failed_run_has_one_error_per_failed_attempt() -> None:
    result = log_leg.enqueue("N1")
    for fence, (outcome, error, life) in enumerate(
        [
            ("failed", "builtins.OSError", 1),
            ("failed", "builtins.KeyError", 2),
            ("lost", "", 2),
            ("timed_out", "nowhere.Error", 2),
            ("failed", "builtins.ValueError", 2),
        ]
    ):
        JobAttempt.objects.create(
            run_id=result.id,
            fence=fence,
            life=life,
            outcome=outcome,
            error_class=error,
            traceback=f"traceback {fence}",
            worker=f"host:{fence}:abc",
            finished_at=timezone.now(),
        )
    last = {"class": "builtins.ValueError", "message": "no", "traceback": "traceback 4"}
    ended(result, "FAILED", error=last, fence=4, life=2, attempts=4, worker="host:4:abc")
    assert result.status == TaskResultStatus.FAILED
    assert [found.exception_class for found in result.errors] == [KeyError, errors.RunFailed, ValueError]
    assert [found.traceback for found in result.errors] == ["traceback 1", "traceback 3", "traceback 4"]
    assert result.worker_ids == ["host:1:abc", "host:2:abc", "host:3:abc", "host:4:abc"]
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value


@pytest.mark.parametrize("path", ["nowhere.Error", "app.jobs.f.<locals>.Error", "os.path.join", "", "builtins.int"])
def test_a_class_that_cannot_be_imported_is_run_failed(path: str) -> None:
    result = ended(log_leg.enqueue("N1"), "FAILED", error={"class": path, "message": "no", "traceback": "lines"})
    assert [(found.exception_class, found.traceback) for found in result.errors] == [(errors.RunFailed, "lines")]


@pytest.mark.parametrize("error", [None, [], "text", {}, {"class": 5}])
def test_a_damaged_error_is_still_a_result(error: Any) -> None:
    result = ended(log_leg.enqueue("N1"), "FAILED", error=error, reason="why")
    assert [found.exception_class for found in result.errors] == [errors.RunFailed]
    assert result.errors[0].traceback == "why"


@pytest.mark.parametrize(
    ("status", "expected", "reason"),
    [("ABANDONED", errors.RunAbandoned, "too_many_losses"), ("CANCELLED", errors.RunCancelled, "expired")],
)
def test_an_abandoned_or_cancelled_run_failed(status: str, expected: Any, reason: str) -> None:
    result = ended(log_leg.enqueue("N1"), status, reason=reason, attempts=0, worker="")
    assert result.status == TaskResultStatus.FAILED
    assert [(found.exception_class, found.traceback) for found in result.errors] == [(expected, reason)]
    assert result.worker_ids == []
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value


def test_a_result_travels() -> None:
    result = log_leg.using(group="one").enqueue("N1")
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_row_of_a_queue_that_is_gone_has_a_result() -> None:
    result = log_leg.enqueue("N1")
    with override_settings(GROUPJOBS={"REDIS": "groupjobs", "QUEUES": ["other"]}):
        assert task_backends["default"].get_result(result.id).task.queue_name == "default"


def test_wait_gives_up_after_its_timeout() -> None:
    result = log_leg.enqueue("N1")
    with pytest.raises(TimeoutError, match=f"Run {result.id} has not ended after 0.05 s: its status is READY"):
        wait(result, 0.05)


@pytest.mark.django_db(transaction=True)
def test_wait_sees_the_end() -> None:
    result = log_leg.enqueue("N1")

    def finish() -> None:
        JobRun.objects.filter(pk=result.id).update(
            status="SUCCEEDED", finished_at=timezone.now(), result=json.loads("7")
        )
        connection.close()

    thread = threading.Timer(0.1, finish)
    thread.start()
    assert wait(result, timedelta(seconds=20)) is result
    assert result.return_value == 7
    thread.join()
    assert wait(result, 0) is result
