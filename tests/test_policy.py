"""Options, templates and arguments: each wrong value gives an error that names the option, the job and the remedy."""

from __future__ import annotations

import enum
import json
import math
import uuid
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from inspect import Signature, signature
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.functional import lazystr
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from groupjobs import errors, policy
from groupjobs.errors import Refused, RefusedArgument
from groupjobs.policy import Policy, group_of, json_checked, retry_delay, validate

pytestmark = pytest.mark.api

JOB = "app.jobs.log_leg"


def leg(tail: str, origin: str = "EWR", *, miles: int = 0) -> None: ...


LEG = signature(leg)


def check(template: Any, parameters: Signature = LEG) -> None:
    policy.check_key(JOB, "group", template, parameters)


def group(template: Any, *args: Any, **kwargs: Any) -> str:
    return group_of(Policy(group=template), JOB, LEG, args, kwargs)


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


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
    ("expires", 0),
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


@pytest.mark.parametrize("template", ["aircraft:{tail}", "{tail}-{origin!r:>5}", "{miles:05d}", "{tail[0]}", "fixed"])
def test_template_over_arguments_is_taken(template: str) -> None:
    check(template)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("aircraft:{tial}", "no argument 'tial'"),
        ("{context.run_id}", "no argument 'context'"),
        ("{}", "no argument ''"),
        ("{0}", "no argument '0'"),
        ("{tail", "is no template"),
        ("tail}", "is no template"),
        ("{tail:{origin}}", "inside a format specification"),
        (lambda: "none", "cannot take the arguments"),
        (lambda a, b, c, d: "four", "cannot take the arguments"),
    ],
)
def test_template_is_checked_against_the_signature(template: Any, problem: str) -> None:
    with pytest.raises(Refused, match=problem) as refusal:
        check(template)
    assert JOB in str(refusal.value)


def test_template_may_name_what_goes_into_open_keywords() -> None:
    def open_ended(tail: str, **rest: Any) -> None: ...

    parameters = signature(open_ended)
    check("{fleet}:{tail}", parameters)
    options = Policy(group="{fleet}:{tail}")
    assert group_of(options, JOB, parameters, ["N1"], {"fleet": "UA"}) == "UA:N1"
    with pytest.raises(Refused, match="fleet"):
        group_of(options, JOB, parameters, ["N1"], {})


def test_group_binds_positional_arguments_and_defaults() -> None:
    assert group("{tail}/{origin}/{miles}", "N1") == "N1/EWR/0"
    assert group("{tail}/{origin}", "N1", "JFK") == "N1/JFK"
    assert group("{tail}", tail="N1") == "N1"


def test_braces_by_the_rules_of_format() -> None:
    assert group("{{{tail}}}", "N1") == "{N1}"
    assert group("{{tail}}", "N1") == "{tail}"


@pytest.mark.parametrize(
    "value", ["a:b", "a{b}c", "ünï©ødé 🛩", "tab\tand\nnewline", " spaces ", "%s %d", "0", "a/b\\c"]
)
def test_any_text_makes_a_group(value: str) -> None:
    assert group("x:{tail}", value) == f"x:{value}"


@pytest.mark.parametrize("value", [None, "", [], {}])
def test_none_or_empty_inside_a_template_is_refused(value: Any) -> None:
    with pytest.raises(Refused, match="'tail'"):
        group("aircraft:{tail}", value)


@pytest.mark.parametrize("value", [0, False])
def test_falsy_values_are_values(value: Any) -> None:
    assert group("aircraft:{tail}", value) == f"aircraft:{value}"


def test_group_of_255_characters_is_the_longest() -> None:
    assert len(group("{tail}", "g" * 255)) == 255
    with pytest.raises(Refused, match="256 characters, and at most 255"):
        group("{tail}", "g" * 256)


@pytest.mark.parametrize("value", ["a\x00b", "a\ud800b"])
def test_nul_and_lone_surrogates_are_refused_in_a_group(value: str) -> None:
    with pytest.raises(Refused, match="holds a"):
        group("{tail}", value)


def test_callable_group_is_called_by_name_or_as_the_job_is() -> None:
    assert group(lambda tail, **rest: f"t:{tail}:{rest['miles']}", "N1") == "t:N1:0"
    assert group(lambda tail, origin, miles: f"{tail}{origin}{miles}", tail="N1") == "N1EWR0"
    assert group(lambda *args, **kwargs: args[0] if args else kwargs["tail"], "N1") == "N1"


def test_callable_group_of_none_is_ungrouped() -> None:
    assert group(lambda **_: None, "N1") == ""


@pytest.mark.parametrize("value", ["", 5, "g" * 256, "\x00"])
def test_callable_group_must_answer_a_group(value: Any) -> None:
    with pytest.raises(Refused, match="group"):
        group(lambda **_: value, "N1")


def test_literal_group_wins_and_is_no_template() -> None:
    options = Policy(group="{tail}", literal_group="fleet:{UA}")
    assert group_of(options, JOB, LEG, ["N1"], {}) == "fleet:{UA}"
    assert group_of(Policy(group="{tail}", literal_group=""), JOB, LEG, ["N1"], {}) == ""


@pytest.mark.parametrize(
    ("args", "kwargs"), [([], {}), (["a", "b", "c"], {}), (["a"], {"tail": "b"}), (["a"], {"x": 1})]
)
def test_arguments_that_do_not_fit_are_refused(args: list[Any], kwargs: dict[str, Any]) -> None:
    with pytest.raises(RefusedArgument, match="do not fit"):
        group_of(Policy(), JOB, LEG, args, kwargs)


def test_dedup_key_is_a_template_too() -> None:
    assert policy.dedup_of(Policy(dedup="leg:{tail}"), JOB, LEG, ["N1"], {}) == "leg:N1"
    assert policy.dedup_of(Policy(dedup=lambda **_: None), JOB, LEG, ["N1"], {}) is None
    assert policy.dedup_of(Policy(), JOB, LEG, ["N1"], {}) is None
    with pytest.raises(Refused, match="dedup"):
        policy.dedup_of(Policy(dedup="{tail}"), JOB, LEG, ["k" * 256], {})


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(-1e16, 1e16)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="ascii", min_codepoint=1)), inner),
    max_leaves=20,
)


@given(st.lists(json_values, max_size=3), st.dictionaries(st.text("abc"), json_values, max_size=3))
def test_json_comes_back_as_it_went_in(args: list[Any], kwargs: dict[str, Any]) -> None:
    plain_args, plain_kwargs = json_checked(JOB, args, kwargs)
    assert (plain_args, plain_kwargs) == (args, kwargs)
    assert json.loads(json.dumps(plain_args)) == plain_args
    assert json.loads(json.dumps(plain_kwargs)) == plain_kwargs


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        (range(3), [0, 1, 2]),
        (OrderedDict(a=(1,)), {"a": [1]}),
        (b"text", "text"),
        (Size.BIG, 3),
        (mark_safe("<b>"), "<b>"),
        (-0.0, 0.0),
        (2**63, 2**63),
        (1e22, 1e22),
    ],
)
def test_values_are_normalised(value: Any, plain: Any) -> None:
    ((got,), _) = json_checked(JOB, [value], {})
    assert got == plain
    assert json.loads(json.dumps(got)) == plain
    assert type(got) is type(plain)


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (datetime(2026, 1, 1), "isoformat()"),
        (date(2026, 1, 1), "isoformat()"),
        (timedelta(1), "total_seconds()"),
        (uuid.UUID(int=1), "str(value)"),
        (Decimal("1.5"), "str(value)"),
        (Path("x"), "str(value)"),
        (lazystr("lazy"), "str(value)"),
        (User(pk=5), "value.pk"),
        (User.objects.all(), "primary keys"),
        (Colour.RED, "value.value"),
        ({1, 2}, "sorted(value)"),
        (math.nan, "None"),
        (math.inf, "None"),
        (-math.inf, "None"),
        (1e23, "as a text"),
        (-1.5e300, "as a text"),
        (b"\xff", "base64"),
        ("\x00", "remove it"),
        ("\udc80", "remove or replace"),
        ({1: "integer key"}, "use '1'"),
        ({None: 1}, "keys in JSON are text"),
        ({"a\x00": 1}, "NUL"),
        (10**2000, "as a text"),
        (object(), "text, numbers"),
        (print, "text, numbers"),
    ],
)
def test_what_is_no_json_is_refused_with_a_remedy(value: Any, remedy: str) -> None:
    with pytest.raises(RefusedArgument) as refusal:
        json_checked(JOB, [], {"when": {"deep": [value]}})
    assert isinstance(refusal.value, TypeError)
    assert JOB in str(refusal.value)
    assert "when['deep'][0]" in str(refusal.value)
    assert remedy in str(refusal.value)


def test_positional_arguments_are_named() -> None:
    with pytest.raises(RefusedArgument, match=r"origin is of type UUID"):
        json_checked(JOB, ["N1", uuid.uuid4()], {}, ("tail", "origin"))


def test_a_circle_and_a_tower_are_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    tower: Any = 1
    for _ in range(31):
        tower = [tower]
    for value in (circle, tower):
        with pytest.raises(RefusedArgument, match="deeper than 30"):
            json_checked(JOB, [value], {})
    assert json_checked(JOB, tower, {})[0] == tower


def test_a_megabyte_is_fine() -> None:
    payload = {"lines": ["ü" * 1024] * 1024}
    assert json_checked(JOB, [], payload)[1] == payload


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


@pytest.mark.parametrize("after", [-1, "5", math.nan, math.inf, True, timedelta(seconds=-1)])
def test_retry_refuses_what_is_no_pause(after: Any) -> None:
    with pytest.raises(ValueError, match="Retry"):
        errors.Retry(after)
