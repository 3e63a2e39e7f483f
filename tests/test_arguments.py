"""Arguments on their way into a row and back: exactly, or refused before anything is written."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import pytest

from groupjobs import job
from groupjobs.errors import Refused
from groupjobs.models import JobRun

pytestmark = [pytest.mark.api, pytest.mark.django_db]


@job(group="aircraft:{tail}")
def log_leg(tail: str, origin: Any = "EWR", *, miles: Any = 0) -> int:
    return 0


@job
def anything(*args: Any, **kwargs: Any) -> None: ...


def row(result: Any) -> JobRun:
    return JobRun.objects.get(pk=result.id)


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
def test_j2_bad_input_is_refused_before_anything_is_written(args: Any, kwargs: Any, said: str) -> None:
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
def test_j2_arguments_come_back_exactly(payload: Any) -> None:
    result = anything.enqueue(payload, key=payload)
    run = row(result)
    assert (run.args, run.kwargs) == ([payload], {"key": payload})
    again = anything.get_result(result.id)
    assert (again.args, again.kwargs) == ([payload], {"key": payload})


def test_tuples_are_normalised_as_django_does() -> None:
    result = anything.enqueue((1, (2,)), key=b"text")
    assert (result.args, result.kwargs) == ([[1, [2]]], {"key": "text"})
    assert row(result).args == [[1, [2]]]
