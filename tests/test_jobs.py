"""`@job`: what a definition is checked for, what `using()` changes, how a job travels."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import override_settings

from groupjobs import Refused, atomic_hook, compat, job
from groupjobs.backend import GroupJobsBackend
from groupjobs.compat import InvalidTask, Task
from groupjobs.jobs import Job, RefusedJob

if TYPE_CHECKING:
    from typing import assert_type

pytestmark = pytest.mark.api

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@job
def bare(number: int) -> int:
    return number * 2


@job(group="aircraft:{tail}", max_attempts=5, retry_on=[ValueError], backoff=[1, 2], labels={"tenant": 5})
def log_leg(tail: str, origin: str, dest: str = "EWR") -> None: ...


@job(name="tests.renamed", takes_context=True)
def with_context(context: Any, number: int) -> str:
    return str(number)


@job
async def coroutine(number: int) -> str:
    return str(number)


def plain_function(tail: str) -> None: ...


def test_a_job_is_a_task_of_django() -> None:
    for made in (bare, log_leg, with_context, coroutine):
        assert isinstance(made, Task)
        assert isinstance(made, Job)
        assert is_dataclass(made)
        assert isinstance(made.get_backend(), GroupJobsBackend)
    assert bare.call(4) == 8
    assert coroutine.call(4) == "4"
    assert log_leg.module_path == f"{__name__}.log_leg"
    assert (log_leg.name, log_leg.job_name) == ("log_leg", f"{__name__}.log_leg")
    assert (with_context.name, with_context.job_name) == ("tests.renamed", "tests.renamed")
    assert repr(with_context) == "<Job tests.renamed>"


def test_every_base_field_has_a_default_and_no_slot() -> None:
    made: Job[..., Any] = Job(func=plain_function)
    assert made.queue_name == "default"
    assert {option.name for option in fields(Task)} <= {option.name for option in fields(Job)}
    assert hasattr(made, "__dict__")
    with pytest.raises(FrozenInstanceError):
        made.priority = 5  # type: ignore[misc]


def test_lists_are_stored_as_tuples_and_a_job_is_hashable() -> None:
    assert log_leg.retry_on == (ValueError,)
    assert log_leg.backoff == (1.0, 2.0)
    assert {log_leg: 1}[log_leg.using()] == 1
    assert hash(log_leg.using(priority=3)) == hash(log_leg.using(priority=3))
    assert log_leg.using(priority=3) != log_leg


def test_using_makes_another_job_and_may_be_chained() -> None:
    later = log_leg.using(run_after=NOON, order=-5)
    both = later.using(group="fleet:UA", priority=10, time_limit=timedelta(minutes=1), labels={"user": "x"})
    assert (both.run_after, both.order, both.literal_group, both.priority) == (NOON, -5, "fleet:UA", 10)
    assert (both.time_limit, both.labels) == (60.0, {"user": "x"})
    assert both.using(time_limit=None).time_limit is None
    assert both.using(priority=None, run_after=None).run_after == NOON
    assert both.using(group=None).literal_group == ""
    assert log_leg.run_after is None
    assert both.group == log_leg.group
    assert both.job_name == log_leg.job_name


WRONG_USING: list[tuple[dict[str, Any], str]] = [
    ({"group": ""}, "group must be the finished text"),
    ({"group": lambda tail: tail}, "group must be the finished text"),
    ({"group": "g" * 256}, "group has 256 characters"),
    ({"group": "\x00"}, "group holds a NUL"),
    ({"priority": 101}, "priority must be a whole number between -100 and 100"),
    ({"priority": 3.1}, "priority must be a whole number"),
    ({"priorty": 1}, r"no option 'priorty'; did you mean 'priority'\?"),
    ({"literal_group": "x"}, "no option 'literal_group'"),
    ({"func": print}, "no option 'func'"),
    ({"retry_on": ValueError}, "retry_on cannot be given in using"),
    ({"backoff": 5}, "backoff cannot be given in using"),
    ({"name": "other"}, "name cannot be given in using"),
    ({"takes_context": True}, "takes_context cannot be given in using"),
    ({"queue_name": "defualt"}, r"queue_name 'defualt' is no queue of this backend; did you mean 'default'\?"),
    ({"run_after": "now"}, "run_after must be a datetime"),
    ({"run_after": datetime(2030, 1, 1)}, "run_after must be an aware datetime"),
    ({"expires": datetime(2030, 1, 1)}, "expires must be an aware datetime"),
    ({"dedup": "{tial}"}, "dedup '{tial}' names {tial}"),
    ({"max_attempts": None}, "max_attempts must be a whole number"),
    ({"soft_time_limit": 5, "time_limit": 5}, "must be shorter"),
]


def named(case: object) -> str:
    """A test id without addresses in memory: every process must collect the same ids."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(case))


@pytest.mark.parametrize(("overrides", "said"), WRONG_USING, ids=named)
def test_a_wrong_override_is_refused_by_name(overrides: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said) as refusal:
        log_leg.using(**overrides)
    assert log_leg.job_name in str(refusal.value)
    assert isinstance(refusal.value, InvalidTask)


WRONG_JOB: list[tuple[dict[str, Any], str]] = [
    ({"max_atempts": 5}, r"no option 'max_atempts'; did you mean 'max_attempts'\?"),
    ({"literal_group": "x"}, "no option 'literal_group'"),
    ({"job_name": "x"}, "no option 'job_name'"),
    ({"group": "aircraft:{tial}"}, "no argument 'tial'; it takes tail"),
    ({"group": lambda a, b: "x"}, "cannot take the arguments"),
    ({"dedup": "{nothing}"}, "dedup .* no argument 'nothing'"),
    ({"run_after": NOON}, "run_after belongs to a call"),
    ({"priority": "high"}, "priority must be"),
    ({"max_losses": -1}, "max_losses must be"),
    ({"backoff": "5 s"}, "backoff must be"),
    ({"after_failure": "stop"}, "after_failure must be"),
    ({"atomic": 1}, "atomic must be"),
    ({"labels": 5}, "labels must be"),
    ({"on_abandoned": lambda run: None}, "on_abandoned must take"),
    ({"name": ""}, "name must be"),
    ({"name": "tests.renamed"}, "the name 'tests.renamed' belongs to"),
    ({"aliases": ["tests.renamed"]}, "the name 'tests.renamed' belongs to"),
    ({"queue_name": "mail"}, "no queue of this backend"),
    ({"takes_context": True}, "first argument of 'context'"),
    ({"expires": datetime(2030, 1, 1)}, "expires must be an aware datetime"),
    ({"backend": "elsewhere"}, "elsewhere"),
]


@pytest.mark.parametrize(("options", "said"), WRONG_JOB, ids=named)
def test_a_wrong_option_is_refused_when_the_job_is_defined(options: dict[str, Any], said: str) -> None:
    from groupjobs import registry

    before = registry.registered()
    with pytest.raises((Refused, compat.InvalidTaskBackend), match=said) as refusal:
        job(**options)(plain_function)
    assert "backend" in options or "plain_function" in str(refusal.value) or str(options["name"]) in str(refusal.value)
    assert registry.registered() == before


@pytest.mark.parametrize("function", [any, lambda: None, "group", log_leg, type("Callable", (), {})(), 5])
def test_only_a_function_of_a_module_becomes_a_job(function: Any) -> None:
    def inner() -> None: ...

    for wrong in (function, inner):
        with pytest.raises(RefusedJob):
            job(wrong)


def test_a_job_travels_by_its_name_and_its_overrides() -> None:
    variants: list[Job[..., Any]] = [
        bare,
        log_leg,
        with_context,
        log_leg.using(group="fleet:UA", priority=5, run_after=NOON, labels={"a": [1]}, expires=60),
        log_leg.using(group=None),
    ]
    for made in variants:
        again: Any = pickle.loads(pickle.dumps(made))
        assert again == made
        assert hash(again) == hash(made)
        assert copy.deepcopy(made) == made
    assert b"with_context" not in pickle.dumps(with_context)


def test_a_pickle_of_a_job_that_is_gone_says_so() -> None:
    text = pickle.dumps(with_context).replace(b"tests.renamed", b"tests.unnamed")
    with pytest.raises(ValueError, match=r"Expected 'tests.unnamed' to point to a Task"):
        pickle.loads(text)


def test_without_time_zones_moments_are_local() -> None:
    from groupjobs import registry

    with override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin"):
        made = bare.using(run_after=NOON, expires=NOON)
        options = registry.policy_of(made)
        assert options.run_after == datetime(2030, 1, 1, 13)
        assert options.expires == datetime(2030, 1, 1, 13)
        assert registry.policy_of(bare.using(run_after=datetime(2030, 1, 1))).run_after == datetime(2030, 1, 1)


@pytest.mark.parametrize("call", [5, "N1", ["N1"], ([], 5), (1, {}), [[], {}, 5], None], ids=str)
def test_a_call_of_enqueue_many_has_one_of_two_forms(call: Any) -> None:
    with pytest.raises(Refused, match="call 2 must be a dict of arguments or a pair"):
        bare.enqueue_many([{"number": 1}, call])


def test_an_atomic_hook_is_marked() -> None:
    @atomic_hook
    def hook(run: Any, reason: str) -> None: ...

    assert hook.groupjobs_atomic  # type: ignore[attr-defined]


if TYPE_CHECKING:
    # Read by the type checker only, which also reports an ignore that is not needed.
    bare.enqueue(5)
    bare.enqueue(number=5)
    bare.enqueue("5")  # type: ignore[arg-type]
    bare.enqueue()  # type: ignore[call-arg]
    log_leg.enqueue("N1", origin="JFK")
    log_leg.enqueue("N1", origin="JFK", gate=5)  # type: ignore[call-arg]
    log_leg.using(group="fleet:UA").enqueue("N1", 5)  # type: ignore[arg-type]
    log_leg.using(priority="5")  # type: ignore[arg-type]
    log_leg.using(after_failure="stop")  # type: ignore[arg-type]
    with_context.enqueue(5)
    with_context.enqueue(None, 5)  # type: ignore[call-arg, arg-type]
    job(max_attempts="5")  # type: ignore[call-overload]
    assert_type(bare.enqueue(5).return_value, int)
    assert_type(with_context.enqueue(5).return_value, str)
    assert_type(coroutine.enqueue(5).return_value, str)
    assert_type(coroutine.using(priority=1).get_result("1").return_value, str)
    assert_type(bare.enqueue_many([{"number": 5}, ([5], {})])[0].return_value, int)
    calls: list[Mapping[str, Any]] = []
    bare.enqueue_many(calls)
