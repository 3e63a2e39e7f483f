"""Tasks and results as values: what may be set, compared, called, pickled and refused."""

from __future__ import annotations

import dataclasses
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings
from django.utils.module_loading import import_string

from groupjobs import compat
from groupjobs.backend import GroupJobsBackend
from groupjobs.compat import (
    InvalidTask,
    InvalidTaskBackend,
    Task,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
)
from groupjobs.jobs import Job

task: Any = import_string(f"{compat.MODULE}.task")

pytestmark = [pytest.mark.api, pytest.mark.django_db]

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@task
def doubles(number: int = 1) -> int:
    return 2 * number


@task()
async def doubles_later(number: int = 1) -> int:
    return 2 * number


@task(priority=7)
def with_priority() -> None: ...


class Prefixed(GroupJobsBackend):
    """A project's own backend on top of ours."""

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.prefix = self.options.get("prefix", "")


class Synchronous(GroupJobsBackend):
    supports_async_task = False
    supports_priority = False
    supports_defer = False


def backend(name: str, **options: Any) -> dict[str, Any]:
    return {"BACKEND": f"{__name__}.{name}", "OPTIONS": options}


def test_the_decorator_takes_a_function_with_or_without_brackets() -> None:
    for made in (doubles, doubles_later, with_priority):
        assert isinstance(made, Task)
        assert isinstance(made, Job)
        assert made.get_backend() is task_backends["default"]
        assert import_string(made.module_path) is made
    assert [made.name for made in (doubles, doubles_later)] == ["doubles", "doubles_later"]
    assert (doubles.priority, with_priority.priority) == (0, 7)


def test_using_changes_a_copy() -> None:
    same = doubles.using()
    assert same == doubles
    assert same is not doubles
    later = doubles.using(run_after=NOON)
    both = later.using(priority=10)
    assert (both.run_after, both.priority, both.queue_name) == (NOON, 10, "default")
    assert (later.priority, doubles.run_after, doubles.priority) == (0, None, 0)


@pytest.mark.parametrize("priority", [-100, 0, 100])
def test_every_priority_of_django_is_taken(priority: int) -> None:
    assert doubles.using(priority=priority).enqueue().task.priority == priority


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"priority": -101}, "priority must be a whole number between -100 and 100"),
        ({"priority": 101}, "priority must be a whole number between -100 and 100"),
        ({"priority": 3.1}, "priority must be a whole number"),
        ({"run_after": datetime(2030, 1, 1)}, "run_after must be an aware datetime"),
        ({"queue_name": "elsewhere"}, "'elsewhere' is no queue of this backend"),
    ],
)
def test_what_may_not_be_set_is_an_invalid_task(options: Any, said: str) -> None:
    with pytest.raises(InvalidTask, match=said):
        doubles.using(**options)


def test_a_backend_that_is_not_there() -> None:
    tasks = {"default": {"BACKEND": compat.BACKEND}, "missing": {"BACKEND": "does.not.exist"}}
    with override_settings(TASKS=tasks):
        for alias in ("unknown", "missing"):
            with pytest.raises(InvalidTaskBackend, match=alias if alias == "unknown" else "does.not.exist"):
                doubles.using(backend=alias)


def test_a_backend_of_a_project_on_top_of_ours() -> None:
    with override_settings(TASKS={"default": backend("Prefixed", prefix="shop")}):
        found = task_backends["default"]
        assert isinstance(found, Prefixed)
        assert (found.prefix, found.options, found.alias) == ("shop", {"prefix": "shop"}, "default")
        assert doubles.enqueue().status == TaskResultStatus.READY


@pytest.mark.parametrize(
    ("made", "options", "said"),
    [
        (doubles_later, {}, "async"),
        (doubles, {"priority": 5}, "priority"),
        (doubles, {"run_after": NOON}, "run_after"),
    ],
)
def test_a_capability_that_is_taken_away_is_refused(made: Any, options: Any, said: str) -> None:
    wanted = made.using(**options)
    with override_settings(TASKS={"default": backend("Synchronous")}), pytest.raises(InvalidTask, match=said):
        wanted.enqueue()


def test_a_task_can_be_called() -> None:
    assert [doubles.call(2), doubles_later.call(2)] == [4, 4]
    assert [async_to_sync(made.acall)(2) for made in (doubles, doubles_later)] == [4, 4]


@pytest.mark.parametrize("value", [datetime(2030, 1, 1), object(), {1, 2}])
def test_an_argument_that_is_no_json_is_a_type_error(value: Any) -> None:
    for enqueue in (doubles.enqueue, async_to_sync(doubles.aenqueue)):
        with pytest.raises(TypeError, match="number is of type"):
            enqueue(value)


def test_results_of_others_and_of_nobody() -> None:
    result = doubles_later.enqueue()
    for found in (doubles.get_result, async_to_sync(doubles.aget_result)):
        with pytest.raises(TaskResultMismatch):
            found(result.id)
        with pytest.raises(TaskResultDoesNotExist):
            found("123456789")


@pytest.mark.parametrize("wrong", [any, type("Callable", (), {"__call__": lambda self: None})().__call__])
def test_only_functions_of_modules_are_tasks(wrong: Any) -> None:
    def inner() -> None: ...

    for function in (wrong, inner):
        with pytest.raises(InvalidTask):
            task()(function)


def test_what_the_decorator_does_not_take() -> None:
    with pytest.raises(InvalidTask, match="first argument of 'context'"):
        task(takes_context=True)(doubles.func)
    with pytest.raises((TypeError, InvalidTask), match="run_after"):
        task(run_after=NOON)(doubles.func)


def test_a_refresh_without_news_changes_nothing() -> None:
    result = doubles.enqueue(3)
    before = dataclasses.asdict(result)
    result.refresh()
    assert dataclasses.asdict(result) == before
    async_to_sync(result.arefresh)()
    assert dataclasses.asdict(result) == before


def test_tasks_and_results_travel() -> None:
    for value in (doubles, doubles.using(priority=3), doubles.enqueue(3)):
        assert pickle.loads(pickle.dumps(value)) == value


def test_results_are_values() -> None:
    result = doubles.enqueue()
    assert result == dataclasses.replace(result)
    assert result != dataclasses.replace(result, status=TaskResultStatus.SUCCESSFUL)
    assert result != dataclasses.replace(result, id="another")
    assert result != dataclasses.replace(result, last_attempted_at=NOON)
    for other in ("no result", 6.2, None):
        assert result != other
