"""The task backend: a full backend of django.tasks over rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import django
import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone
from django.utils.module_loading import import_string

from groupjobs import compat, job
from groupjobs.backend import GroupJobsBackend
from groupjobs.compat import (
    InvalidTask,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from groupjobs.errors import Refused
from groupjobs.jobs import Job
from groupjobs.models import JobRun

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


def test_the_signal_comes_after_the_insert(heard: list[Any]) -> None:
    first = log_leg.enqueue("N1")
    more = log_leg.enqueue_many([{"tail": "N2"}, {"tail": "N3"}])
    assert heard == [(GroupJobsBackend, result, True) for result in [first, *more]]


def test_validation_loads_no_rows() -> None:
    with connection.execute_wrapper(lambda *_: pytest.fail("a query was made")):
        task_backends["default"].validate_task(log_leg)
        log_leg.using(priority=5, group="one")


def test_context_is_not_passed_by_callers() -> None:
    run = row(with_context.enqueue(5))
    assert (run.args, run.dedup_key) == ([5], "once:5")
    with pytest.raises(Refused, match="do not fit"):
        with_context.enqueue(None, 5)  # type: ignore[call-arg, arg-type]
