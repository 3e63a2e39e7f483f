"""Arguments are JSON: they come back as they went in, or are refused with the argument's name and a remedy."""

from __future__ import annotations

import enum
import json
import math
import uuid
from collections import OrderedDict
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.functional import lazystr
from django.utils.safestring import mark_safe
from hypothesis import given
from hypothesis import strategies as st

from groupjobs.errors import RefusedArgument
from groupjobs.policy import json_checked

pytestmark = pytest.mark.api

JOB = "app.jobs.log_leg"


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


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
