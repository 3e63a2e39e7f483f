"""Every option: refused by name where it is written, at import and in `using()`; and kept by the row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import override_settings

from groupjobs import Refused, job, registry
from groupjobs.models import JobRun
from groupjobs.policy import OPTIONS, WORKER_OPTIONS
from tests.test_policy import WRONG_OPTIONS

pytestmark = [pytest.mark.api, pytest.mark.django_db]

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
PUBLIC = [(option, value) for option, value in WRONG_OPTIONS if option in OPTIONS]
# The group that `using()` gives is a finished text; None is taken there for these as for Django's own.
IN_USING = [
    (option, value)
    for option, value in PUBLIC
    if option not in WORKER_OPTIONS and not (option == "dedup" and value == "")
]


@job(group="aircraft:{tail}", dedup="leg:{tail}")
def log_leg(tail: str) -> None: ...


def plain_function(tail: str) -> None: ...


@pytest.mark.parametrize(("option", "value"), PUBLIC)
def test_a_wrong_value_is_refused_at_import(option: str, value: Any) -> None:
    before = registry.registered()
    with pytest.raises(Refused, match=option) as refused:
        job(**{option: value})(plain_function)
    assert f"{__name__}.plain_function" in str(refused.value) or option == "name"
    assert registry.registered() == before


@pytest.mark.parametrize(("option", "value"), IN_USING)
def test_a_wrong_value_is_refused_in_using(option: str, value: Any) -> None:
    with pytest.raises(Refused, match=option) as refused:
        log_leg.using(**{option: value})
    assert log_leg.job_name in str(refused.value)


# option: (value, column, what the row holds)
IN_A_ROW: dict[str, tuple[Any, str, Any]] = {
    "queue_name": ("mail", "queue", "mail"),
    "group": ("fleet", "group", "fleet"),
    "priority": (-7, "priority", -7),
    "run_after": (NOON, "run_after", NOON),
    "order": (-5, "order", -5),
    "max_attempts": (4, "max_attempts", 4),
    "on_retry": ("yield", "on_retry", "yield"),
    "max_losses": (0, "max_losses", 0),
    "after_failure": ("cancel", "after_failure", "cancel"),
    "atomic": (True, "atomic", True),
    "time_limit": (60, "time_limit", 60.0),
    "soft_time_limit": (5, "soft_time_limit", 5.0),
    "expires": (NOON, "expires_at", NOON),
    "dedup": ("other:{tail}", "dedup_key", "other:N1"),
    "on_duplicate": ("coalesce", "coalesces", True),
    "labels": ({"tenant": 5}, "labels", {"tenant": 5}),
}


def test_every_option_can_be_given_in_using_or_belongs_to_the_job() -> None:
    assert set(IN_A_ROW) | WORKER_OPTIONS == set(OPTIONS)
    assert not set(IN_A_ROW) & WORKER_OPTIONS


@pytest.mark.parametrize("option", IN_A_ROW)
def test_an_option_of_using_reaches_the_row(option: str) -> None:
    value, column, held = IN_A_ROW[option]
    with override_settings(GROUPJOBS={"REDIS": "groupjobs", "QUEUES": ["default", "mail"]}):
        plain, other = log_leg.enqueue("N0"), log_leg.using(**{option: value}).enqueue("N1")
    rows = [JobRun.objects.get(pk=result.id) for result in (plain, other)]
    assert getattr(rows[1], column) == held
    assert getattr(rows[0], column) != held


@pytest.mark.parametrize("option", sorted(WORKER_OPTIONS))
def test_an_option_that_only_the_code_can_say_is_refused_in_using(option: str) -> None:
    given: dict[str, Any] = {option: None}
    with pytest.raises(Refused, match=f"{option} cannot be given in using"):
        log_leg.using(**given)


def bad_key(tail: str) -> Any:
    return {"number": 5, "empty": "", "long": "x" * 256, "nul": "a\0b", "surrogate": "\ud800"}[tail]


@pytest.mark.parametrize("tail", ["number", "empty", "long", "nul", "surrogate"])
@pytest.mark.parametrize("option", ["group", "dedup"])
def test_a_key_that_is_none_is_refused_at_enqueue(option: str, tail: str) -> None:
    """What a callable answers is known only then."""
    key: Callable[..., Any] = bad_key
    made = log_leg.using(dedup=key) if option == "dedup" else grouped
    with pytest.raises(Refused, match=option) as refused:
        made.enqueue(tail)
    assert made.job_name in str(refused.value)
    assert not JobRun.objects.exists()


@pytest.mark.parametrize("option", ["group", "dedup"])
def test_a_callable_that_raises_is_named(option: str) -> None:
    made = log_leg.using(dedup=bad_key) if option == "dedup" else grouped
    with pytest.raises(KeyError) as raised:
        made.enqueue("raises")
    assert raised.value.__notes__ == [f"Raised by the callable that is the option {option!r} of job {made.job_name!r}."]


@job(group=bad_key)
def grouped(tail: str) -> None: ...
