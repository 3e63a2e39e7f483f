"""Tasks of django.tasks from `enqueue` to their end: what a result shows, what is logged, what a handler is given."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.test import override_settings
from django.utils.module_loading import import_string

from groupjobs import compat, job, testing
from groupjobs.compat import InvalidTask, TaskResultStatus, task_backends
from groupjobs.models import JobRun

task: Any = import_string(f"{compat.MODULE}.task")

pytestmark = [pytest.mark.api, pytest.mark.django_db]


@job
def adds(one: int, two: int = 0) -> int:
    return one + two


@job
async def adds_later(one: int, two: int = 0) -> int:
    return one + two


@task
def plainly_adds(one: int, two: int = 0) -> int:
    return one + two


@task
async def plainly_adds_later(one: int, two: int = 0) -> int:
    return one + two


@task(takes_context=True)
def tells_context(context: Any) -> list[Any]:
    return [context.task_result.id, context.attempt, context.task_result.status]


@task(takes_context=True)
async def tells_context_later(context: Any) -> list[Any]:
    result = await task_backends["default"].aget_result(str(context.run_id))
    return [result.id, context.attempt, result.status]


@job
def raises(kind: str) -> None:
    raise {"value": ValueError, "exit": SystemExit, "nested": ValueError}[kind](
        ValueError("what went wrong") if kind == "nested" else "what went wrong"
    )


@job
def answers_an_object() -> Any:
    return object()


@job
def is_interrupted() -> None:
    raise KeyboardInterrupt


ADDERS = [adds, adds_later, plainly_adds, plainly_adds_later]


@pytest.fixture(autouse=True)
def memory() -> Iterator[None]:
    with testing.in_memory():
        yield


def refreshed(result: Any) -> Any:
    """The result after everything has run."""
    testing.drain()
    result.refresh()
    return result


@pytest.mark.parametrize("made", ADDERS, ids=lambda made: made.name)
def test_a_result_of_a_success(made: Any) -> None:
    result = refreshed(made.enqueue(1, two=3))
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.is_finished
    assert result.return_value == 4
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.last_attempted_at == result.started_at
    assert (result.task, result.args, result.kwargs) == (made, [1], {"two": 3})
    assert (result.attempts, result.errors) == (1, [])
    assert result.worker_ids == [JobRun.objects.get(pk=result.id).worker]
    assert made.get_result(result.id) == result


@pytest.mark.parametrize("made", ADDERS, ids=lambda made: made.name)
def test_a_result_in_asynchronous_code(made: Any) -> None:
    async def enqueued() -> Any:
        result = await made.aenqueue(1)
        assert result.status == TaskResultStatus.READY
        return result

    async def found(result: Any) -> Any:
        await result.arefresh()
        assert await made.aget_result(result.id) == result
        assert await task_backends["default"].aget_result(result.id) == result
        return result

    result = async_to_sync(enqueued)()
    testing.drain()
    assert async_to_sync(found)(result).return_value == 1


def test_the_backend_takes_arguments_as_sequences() -> None:
    backend = task_backends["default"]
    one = backend.enqueue(adds, [1], {})
    other = async_to_sync(backend.aenqueue)(adds, [1], {"two": 1})
    testing.drain()
    assert [backend.get_result(result.id).return_value for result in (one, other)] == [1, 2]


@pytest.mark.parametrize(
    ("kind", "error", "ending"),
    [
        ("value", ValueError, "ValueError: what went wrong\n"),
        ("exit", SystemExit, "SystemExit: what went wrong\n"),
        ("nested", ValueError, "ValueError: what went wrong\n"),
    ],
)
def test_a_result_of_a_failure(kind: str, error: Any, ending: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        result = refreshed(raises.enqueue(kind))
    assert result.status == TaskResultStatus.FAILED
    assert result.is_finished
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result._return_value is None
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value
    assert [found.exception_class for found in result.errors] == [error]
    assert result.errors[0].traceback.endswith(ending)
    for name in ("groupjobs.runs", compat.MODULE):
        said = [record for record in caplog.records if record.name == name]
        assert [record.levelno for record in said] == [logging.ERROR], name
        assert result.id in said[0].getMessage()


def test_a_value_that_is_no_json_is_a_type_error() -> None:
    result = refreshed(answers_an_object.enqueue())
    assert result.status == TaskResultStatus.FAILED
    assert issubclass(result.errors[0].exception_class, TypeError)
    assert "is of type object" in result.errors[0].traceback


def test_an_interrupt_from_the_keyboard_is_nobody_s_failure(caplog: pytest.LogCaptureFixture) -> None:
    result = is_interrupted.enqueue()
    with caplog.at_level(logging.ERROR), pytest.raises(KeyboardInterrupt):
        testing.drain()
    result.refresh()
    assert not result.is_finished
    assert result.errors == []
    assert caplog.records == []


@pytest.mark.parametrize("made", [tells_context, tells_context_later], ids=lambda made: made.name)
def test_a_context_is_given_to_those_who_take_it(made: Any) -> None:
    result = refreshed(made.enqueue())
    assert result.return_value == [result.id, 1, "RUNNING"]


def test_django_s_own_logger_tells_of_each_step(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger=compat.MODULE):
        good = refreshed(adds.enqueue(1))
        bad = refreshed(raises.enqueue("value"))
    said = [record.getMessage() for record in caplog.records if record.name == compat.MODULE]
    for result, lines in ((good, said[:3]), (bad, said[3:])):
        assert [result.id in line for line in lines] == [True] * 3
    words = [["enqueued", "RUNNING", "SUCCESSFUL"], ["enqueued", "RUNNING", "FAILED"]]
    for line, word in zip(said, [*words[0], *words[1]], strict=True):
        assert word in line
        assert "NoneType" not in line or word == "FAILED"


def test_what_is_enqueued_in_a_transaction_waits_for_its_commit(
    django_capture_on_commit_callbacks: Any,
) -> None:
    with django_capture_on_commit_callbacks(execute=True) as callbacks, transaction.atomic():
        result = adds.enqueue(1)
        assert result.status == TaskResultStatus.READY
        assert result.enqueued_at is not None
    assert len(callbacks) == 1
    assert refreshed(result).return_value == 1


def test_a_queue_is_checked_when_it_is_enqueued_to() -> None:
    ours = {"REDIS": "groupjobs", "QUEUES": ["default", "mail"]}
    narrow = {"default": {"BACKEND": compat.BACKEND, "QUEUES": ["default"]}}
    with override_settings(GROUPJOBS=ours):
        mail = adds.using(queue_name="mail")
        with override_settings(TASKS=narrow):
            for enqueue in (mail.enqueue, async_to_sync(mail.aenqueue)):
                with pytest.raises(InvalidTask, match="'mail' is no queue of this backend"):
                    enqueue(1)
    assert not JobRun.objects.exists()
