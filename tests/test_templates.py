"""Groups and dedup keys: templates over the bound arguments, callables, finished texts."""

from __future__ import annotations

from inspect import Signature, signature
from typing import Any

import pytest

from groupjobs import policy
from groupjobs.errors import Refused, RefusedArgument
from groupjobs.policy import Policy, group_of
from groupjobs.policy.templates import bound

pytestmark = pytest.mark.api

JOB = "app.jobs.log_leg"


def leg(tail: str, origin: str = "EWR", *, miles: int = 0) -> None: ...


LEG = signature(leg)


def check(template: Any, parameters: Signature = LEG) -> None:
    policy.check_key(JOB, "group", template, parameters)


def group(template: Any, *args: Any, **kwargs: Any) -> str:
    return group_of(Policy(group=template), JOB, LEG, args, kwargs)


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
def test_j2_any_text_makes_a_group(value: str) -> None:
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


def plain(a: Any, b: Any = 2, *, c: Any = 3) -> None: ...
def positional(a: Any, /, b: Any = 2) -> None: ...
def open_ended(a: Any, *rest: Any, b: Any = 2, **more: Any) -> None: ...


@pytest.mark.parametrize("function", [plain, positional, open_ended])
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {"a": 1}),
        ((), {"c": 5, "a": 1}),
        ((), {}),
        ((), {"b": 1}),
        ((), {"a": 1, "x": 2}),
        ((1,), {"b": 4}),
        ((1, 7), {}),
    ],
)
def test_calls_are_bound_as_python_binds_them(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    parameters = signature(function)
    try:
        expected = parameters.bind(*args, **kwargs)
    except TypeError:
        with pytest.raises(RefusedArgument, match="do not fit"):
            bound("job", parameters, args, kwargs)
        return
    expected.apply_defaults()
    found = bound("job", parameters, args, kwargs)
    assert list(found.arguments.items()) == list(expected.arguments.items())
    assert (found.args, found.kwargs) == (expected.args, expected.kwargs)
