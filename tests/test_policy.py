"""Options: each wrong value gives an error that names the option, the job and the remedy."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from groupjobs import errors
from groupjobs.errors import Refused
from groupjobs.policy import OPTIONS, Policy, retry_delay, validate
from groupjobs.policy.rules import RULES

pytestmark = pytest.mark.api

JOB = "app.jobs.log_leg"


WRONG_OPTIONS: list[tuple[str, Any]] = [
    ("queue_name", ""),
    ("queue_name", 5),
    ("queue_name", "a\x00"),
    ("queue_name", "q" * 101),
    ("priority", 101),
    ("priority", -101),
    ("priority", "high"),
    ("priority", 1.0),
    ("priority", True),
    ("run_after", "tomorrow"),
    ("group", ""),
    ("group", 7),
    ("group", ["a"]),
    ("order", 2**53 + 1),
    ("order", -(2**53) - 1),
    ("order", 1.5),
    ("max_attempts", 0),
    ("max_attempts", -1),
    ("max_attempts", "5"),
    ("max_attempts", 2**31),
    ("max_attempts", None),
    ("retry_on", "ValueError"),
    ("retry_on", 5),
    ("retry_on", [ValueError, "KeyError"]),
    ("retry_on", KeyboardInterrupt),
    ("retry_on", [ValueError("an instance")]),
    ("backoff", -1),
    ("backoff", math.nan),
    ("backoff", math.inf),
    ("backoff", "5"),
    ("backoff", []),
    ("backoff", [1, -1]),
    ("backoff", timedelta(days=4000)),
    ("backoff", True),
    ("on_retry", "wait"),
    ("on_retry", None),
    ("max_losses", -1),
    ("max_losses", 1.5),
    ("after_failure", "stop"),
    ("after_failure", ["hold"]),
    ("atomic", 1),
    ("atomic", "yes"),
    ("time_limit", 0),
    ("time_limit", -5),
    ("time_limit", "1h"),
    ("time_limit", math.nan),
    ("soft_time_limit", timedelta(0)),
    ("time_limit", math.inf),
    ("time_limit", True),
    ("soft_time_limit", 10**10),
    ("expires", 0),
    ("expires", 10**10),
    ("expires", "soon"),
    ("expires", date(2026, 1, 1)),
    ("dedup", ""),
    ("dedup", 5),
    ("on_duplicate", "ignore"),
    ("on_abandoned", "app.hooks.tell"),
    ("on_abandoned", lambda run: None),
    ("on_abandoned", lambda run, reason, more: None),
    ("labels", ["tenant"]),
    ("labels", {"at": date(2026, 1, 1)}),
    ("labels", {5: "five"}),
    ("takes_context", "yes"),
    ("name", ""),
    ("name", 5),
    ("name", "n" * 256),
    ("aliases", 5),
    ("aliases", ["fine", ""]),
    ("literal_group", "g" * 256),
    ("literal_group", "g\x00"),
]


@pytest.mark.parametrize(("option", "value"), WRONG_OPTIONS)
def test_wrong_option_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(Refused) as refusal:
        validate(JOB, {option: value})
    message = str(refusal.value)
    assert JOB in message
    assert option.removeprefix("literal_") in message
    assert refusal.value.job == JOB
    assert refusal.value.subject == option.removeprefix("literal_")
    assert "\x00" not in message


def test_no_option_is_without_wrong_values() -> None:
    assert {option for option, _ in WRONG_OPTIONS} == set(RULES) >= set(OPTIONS)


@pytest.mark.parametrize(
    ("option", "value", "normal"),
    [
        ("retry_on", ValueError, (ValueError,)),
        ("retry_on", [ValueError, KeyError], (ValueError, KeyError)),
        ("retry_on", [], ()),
        ("backoff", [1, timedelta(minutes=1)], (1.0, 60.0)),
        ("backoff", timedelta(seconds=5), 5.0),
        ("backoff", None, None),
        ("time_limit", timedelta(minutes=1), 60.0),
        ("time_limit", None, None),
        ("expires", 5, 5.0),
        ("expires", datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)),
        ("aliases", "old.path", ("old.path",)),
        ("aliases", ["a", "b"], ("a", "b")),
        ("max_losses", 0, 0),
        ("order", -(2**53), -(2**53)),
        ("labels", {"tenant": 5, "ids": (1, 2)}, {"tenant": 5, "ids": [1, 2]}),
    ],
)
def test_options_are_normalised(option: str, value: Any, normal: Any) -> None:
    assert validate(JOB, {option: value}) == {option: normal}


def test_unknown_option_gets_a_suggestion() -> None:
    with pytest.raises(Refused, match=r"no option 'max_atempts'; did you mean 'max_attempts'\?"):
        validate(JOB, {"max_atempts": 5})


def test_soft_limit_must_be_below_the_hard_one() -> None:
    with pytest.raises(Refused, match=r"soft_time_limit \(60 s\) must be shorter than time_limit \(60 s\)"):
        validate(JOB, {"time_limit": 60, "soft_time_limit": 60})


def test_backoff_of_each_kind() -> None:
    assert retry_delay(Policy(backoff=5.0), 3) == 5
    assert [retry_delay(Policy(backoff=(1.0, 10.0)), failures) for failures in (1, 2, 3, 9)] == [1, 10, 10, 10]
    assert retry_delay(Policy(backoff=lambda failures: timedelta(seconds=failures * 2)), 3) == 6


@pytest.mark.parametrize("answer", ["5", None, -1, math.nan])
def test_backoff_that_answers_nonsense_is_logged_and_replaced(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert retry_delay(Policy(backoff=lambda failures: answer), 1) == 60
    assert "gave no duration" in caplog.text


def test_backoff_that_raises_is_logged_and_replaced(caplog: pytest.LogCaptureFixture) -> None:
    assert retry_delay(Policy(backoff=lambda failures: 1 / 0), 1) == 60
    assert "ZeroDivisionError" in caplog.text


def test_interrupts_are_not_swallowed_by_except_exception() -> None:
    for interrupt in (errors.Retry, errors.Cancel, errors.Hold, errors.LeaseLost):
        assert issubclass(interrupt, errors.Interrupt)
        assert not issubclass(interrupt, Exception)
    assert errors.Cancel("by hand").reason == "by hand"


@pytest.mark.parametrize(("after", "seconds"), [(None, None), (0, 0), (1.5, 1.5), (timedelta(minutes=1), 60)])
def test_retry_takes_seconds_or_a_timedelta(after: Any, seconds: float | None) -> None:
    assert errors.Retry(after).after == seconds


@pytest.mark.parametrize("after", [-1, "5", math.nan, math.inf, True, timedelta(seconds=-1), timedelta(days=4000)])
def test_retry_refuses_what_is_no_pause(after: Any) -> None:
    with pytest.raises(ValueError, match="Retry"):
        errors.Retry(after)
