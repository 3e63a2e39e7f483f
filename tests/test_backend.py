"""The task backend: a full backend of django.tasks over rows."""

from __future__ import annotations

import json
import pickle
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import django
import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone
from django.utils.module_loading import import_string

from groupjobs import compat, errors, job, wait
from groupjobs.backend import GroupJobsBackend
from groupjobs.compat import (
    InvalidTask,
    Task,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from groupjobs.errors import Refused
from groupjobs.jobs import Job
from groupjobs.models import JobAttempt, JobRun

task: Any = import_string(f"{compat.MODULE}.task")

pytestmark = [pytest.mark.api, pytest.mark.django_db]

OURS = "groupjobs.backend.GroupJobsBackend"
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@job(group="aircraft:{tail}", max_attempts=5)
def log_leg(tail: str, origin: Any = "EWR", *, miles: Any = 0) -> int:
    return 0


@job
def anything(*args: Any, **kwargs: Any) -> None: ...


@job(takes_context=True, dedup="once:{number}")
def with_context(context: Any, number: int) -> None: ...


@task
def plain(number: int) -> int:
    return number


@task(priority=5)
async def plain_coroutine(number: int) -> int:
    return number


@pytest.fixture
def heard() -> Iterator[list[Any]]:
    results: list[Any] = []

    def receiver(sender: Any, task_result: Any, **_: Any) -> None:
        results.append((sender, task_result, JobRun.objects.filter(pk=task_result.id).exists()))

    task_enqueued.connect(receiver)
    yield results
    task_enqueued.disconnect(receiver)


def row(result: Any) -> JobRun:
    return JobRun.objects.get(pk=result.id)


def test_capabilities_and_construction() -> None:
    backend = task_backends["default"]
    assert isinstance(backend, GroupJobsBackend)
    assert (backend.supports_defer, backend.supports_async_task) == (True, True)
    assert (backend.supports_get_result, backend.supports_priority) == (True, True)
    assert backend.task_class is Job
    assert (backend.alias, backend.options) == ("default", {})
    assert list(backend.check()) == []


def test_enqueue_writes_a_row_and_answers_a_result() -> None:
    result = log_leg.enqueue("N1", miles=5)
    assert len(result.id) < 64
    assert result.status == TaskResultStatus.READY
    assert result.task == log_leg
    assert (result.args, result.kwargs) == (["N1"], {"miles": 5})
    assert (result.errors, result.worker_ids, result.attempts) == ([], [], 0)
    assert not result.is_finished
    assert isinstance(result.enqueued_at, datetime)
    run = row(result)
    assert (run.group, run.job, run.queue, run.status) == ("aircraft:N1", log_leg.job_name, "default", "READY")
    assert (run.max_attempts, run.max_losses) == (5, 2)
    assert run.progress.done == 0
    assert log_leg.get_result(result.id) == result
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value


def test_options_reach_the_row_and_come_back_on_the_task() -> None:
    variant = log_leg.using(
        group="fleet:{UA}",
        priority=-7,
        run_after=NOON,
        order=-(2**53),
        max_losses=0,
        after_failure="hold",
        on_retry="yield",
        atomic=True,
        time_limit=timedelta(minutes=1),
        soft_time_limit=5,
        labels={"tenant": [1, "x"]},
    )
    result = variant.enqueue("N1")
    run = row(result)
    assert (run.group, run.priority, run.run_after, run.order) == ("fleet:{UA}", -7, NOON, -(2**53))
    assert (run.max_losses, run.after_failure, run.on_retry, run.atomic) == (0, "hold", "yield", True)
    assert (run.time_limit, run.soft_time_limit, run.labels) == (60.0, 5.0, {"tenant": [1, "x"]})
    again = log_leg.get_result(result.id)
    assert again.task == variant
    assert again == result
    again.refresh()
    assert again == result


def test_expiry_is_counted_from_the_enqueue_or_given() -> None:
    run = row(log_leg.using(expires=60).enqueue("N1"))
    assert run.expires_at is not None
    assert timedelta(seconds=50) < run.expires_at - timezone.now() <= timedelta(seconds=61)
    assert row(log_leg.using(expires=NOON).enqueue("N1")).expires_at == NOON


def test_ungrouped_runs_have_no_group() -> None:
    assert row(anything.enqueue()).group == ""
    assert row(log_leg.using(group=None).enqueue("N1")).group == ""


def test_a_plain_task_runs_through_the_backend() -> None:
    for made, job_name in [(plain, f"{__name__}.plain"), (plain_coroutine, f"{__name__}.plain_coroutine")]:
        assert isinstance(made, Job)
        result = made.using(priority=9).enqueue(5)
        run = row(result)
        assert (run.job, run.group, run.priority, run.args) == (job_name, "", 9, [5])
        assert made.get_result(result.id).task == made.using(priority=9)


@pytest.mark.skipif((6, 0) <= django.VERSION < (6, 1), reason="6.0 refuses unknown keywords itself")
def test_a_plain_task_takes_our_options() -> None:
    made = task(group="order:{number}", max_attempts=3)(plain.func)
    assert row(made.enqueue(5)).group == "order:5"
    assert row(made.enqueue(5)).max_attempts == 3
    with pytest.raises(Refused, match=r"no option 'grop'; did you mean 'group'\?"):
        task(grop="order:{number}")(plain.func)


def test_a_task_of_another_alias_may_be_sent_here() -> None:
    immediate = f"{compat.MODULE}.backends.immediate.ImmediateBackend"
    with override_settings(TASKS={"default": {"BACKEND": immediate}, "runs": {"BACKEND": OURS}}):
        foreign = task(plain.func)
        assert not isinstance(foreign, Job)
        result = foreign.using(backend="runs", priority=3, run_after=NOON).enqueue(5)
        run = row(result)
        assert (run.job, run.priority, run.run_after, run.max_attempts) == (f"{__name__}.plain", 3, NOON, 1)
        for wrong in ({"priority": 101}, {"priority": "x"}, {"run_after": datetime(2030, 1, 1)}, {"queue_name": "q"}):
            with pytest.raises(InvalidTask):
                foreign.using(backend="runs", **wrong)


def test_enqueue_many_is_one_call_in_order() -> None:
    calls: list[Any] = [{"tail": f"N{number % 3}"} for number in range(30)] + [(["N9", "JFK"], {"miles": 5})]
    results = log_leg.enqueue_many(calls)
    runs = [row(result) for result in results]
    assert [run.group for run in runs] == [f"aircraft:N{number % 3}" for number in range(30)] + ["aircraft:N9"]
    assert [run.pk for run in runs] == sorted(run.pk for run in runs)
    assert (results[-1].args, results[-1].kwargs) == (["N9", "JFK"], {"miles": 5})
    assert log_leg.enqueue_many([]) == []
    assert len({result.id for result in results}) == 31


def test_enqueue_many_is_all_or_nothing() -> None:
    with pytest.raises(Refused, match="tail"):
        log_leg.enqueue_many([{"tail": "N1"}, {"tail": None}, {"tail": "N3"}])
    with pytest.raises(Refused, match="miles is of type Decimal"):
        log_leg.enqueue_many([{"tail": "N1"}, {"tail": "N2", "miles": Decimal(1)}])
    assert JobRun.objects.count() == 0


def test_asynchronous_enqueue() -> None:
    async def all_of_them() -> list[Any]:
        one = await log_leg.aenqueue("N1")
        more = await log_leg.aenqueue_many([{"tail": "N2"}, {"tail": "N3"}])
        found = await log_leg.aget_result(one.id)
        await found.arefresh()
        return [one, *more, found]

    one, *more, found = async_to_sync(all_of_them)()
    assert found == one
    assert [row(result).group for result in [one, *more]] == ["aircraft:N1", "aircraft:N2", "aircraft:N3"]


def test_a_rolled_back_enqueue_leaves_nothing() -> None:
    with transaction.atomic():
        log_leg.enqueue("N1")
        assert JobRun.objects.count() == 1
        transaction.set_rollback(True)
    assert JobRun.objects.count() == 0


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "missing a required argument: 'tail'"),
        (("N1",), {"gate": 5}, "unexpected keyword argument 'gate'"),
        (("N1", "JFK", 5), {}, "too many positional"),
        ((None,), {}, "needs a value for 'tail'"),
        (("",), {}, "needs a value for 'tail'"),
        (("t" * 247,), {}, "at most 255"),
        (("a\x00",), {}, "tail holds a NUL"),
        (("N1", uuid.uuid4()), {}, r"origin is of type UUID, which is not JSON; pass str\(value\)"),
        (("N1",), {"miles": float("nan")}, "miles is nan"),
        (("N1",), {"miles": {1: 2}}, "keys in JSON are text"),
        (("N1", datetime(2026, 1, 1)), {}, "isoformat"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(args: Any, kwargs: Any, said: str) -> None:
    with pytest.raises(Refused, match=said) as refusal:
        log_leg.enqueue(*args, **kwargs)
    assert log_leg.job_name in str(refusal.value)
    assert JobRun.objects.count() == 0


PAYLOADS: list[Any] = [
    "a:b|c,d;e{f}%s%%\\",
    "ünï©ødé 🛩 \u200f\u2028",
    "x" * 2**20,
    {"deep": [{"a": [1, 2.5, None, True, "ü"]}]},
    [2**53 + 1, -(2**63), 10**300, 1e22, 1e-300, 5e-324, 0.1, -0.0],
    "",
    [],
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: str(payload)[:20])
def test_arguments_come_back_exactly(payload: Any) -> None:
    result = anything.enqueue(payload, key=payload)
    run = row(result)
    assert (run.args, run.kwargs) == ([payload], {"key": payload})
    again = anything.get_result(result.id)
    assert (again.args, again.kwargs) == ([payload], {"key": payload})


def test_tuples_are_normalised_as_django_does() -> None:
    result = anything.enqueue((1, (2,)), key=b"text")
    assert (result.args, result.kwargs) == ([[1, [2]]], {"key": "text"})
    assert row(result).args == [[1, [2]]]


def test_the_signal_comes_after_the_insert(heard: list[Any]) -> None:
    first = log_leg.enqueue("N1")
    more = log_leg.enqueue_many([{"tail": "N2"}, {"tail": "N3"}])
    assert heard == [(GroupJobsBackend, result, True) for result in [first, *more]]


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


def test_queues_of_tasks_only_narrow() -> None:
    ours = {"REDIS": "groupjobs", "QUEUES": ["default", "mail", "slow"]}
    narrow = {"default": {"BACKEND": OURS, "QUEUES": ["default", "mail"]}}
    with override_settings(GROUPJOBS=ours):
        assert log_leg.using(queue_name="slow").queue_name == "slow"
        with override_settings(TASKS=narrow):
            assert task_backends["default"].queues == {"default", "mail"}
            log_leg.using(queue_name="mail").enqueue("N1")
            with pytest.raises(InvalidTask, match="queue_name 'slow' is no queue of this backend"):
                log_leg.using(queue_name="slow")
    wide = {"default": {"BACKEND": OURS, "QUEUES": ["defalt"]}}
    with (
        override_settings(TASKS=wide),
        pytest.raises(ImproperlyConfigured, match=r"'defalt', which is not in GROUPJOBS.*did you mean 'default'\?"),
    ):
        task_backends["default"]


def test_the_queue_is_checked_again_at_enqueue() -> None:
    with override_settings(GROUPJOBS={"REDIS": "groupjobs", "QUEUES": ["default", "mail"]}):
        variant = log_leg.using(queue_name="mail")
    with pytest.raises(InvalidTask, match=r"'mail' is no queue .*known are default"):
        variant.enqueue("N1")


@pytest.mark.parametrize("wrong", [5, None, [], "x" * 300])
def test_a_queue_name_of_any_kind_is_refused_clearly(wrong: Any) -> None:
    foreign = object.__new__(Task)
    for name, value in {"func": plain.func, "queue_name": wrong, "priority": 0, "run_after": None}.items():
        object.__setattr__(foreign, name, value)
    with pytest.raises(Refused, match="queue_name"):
        task_backends["default"].validate_task(foreign)


def test_validation_loads_no_rows() -> None:
    with connection.execute_wrapper(lambda *_: pytest.fail("a query was made")):
        task_backends["default"].validate_task(log_leg)
        log_leg.using(priority=5, group="one")


def test_context_is_not_passed_by_callers() -> None:
    run = row(with_context.enqueue(5))
    assert (run.args, run.dedup_key) == ([5], "once:5")
    with pytest.raises(Refused, match="do not fit"):
        with_context.enqueue(None, 5)  # type: ignore[call-arg, arg-type]


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
