"""A COMMIT whose reply is lost, and a value that the database does not take."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models import F

from groupjobs import ledger, lifecycle, moves
from groupjobs.ledger import Answer, Attempt, Settlement
from tests.core.rows import (
    QUEUE,
    again,
    aside,
    attempts,
    beginning,
    change,
    new,
    outcomes,
    reroute,
    running,
    settle,
)
from tests.servers.wire import Proxy

committed = pytest.mark.django_db(transaction=True)


def through(wire: Proxy, call: Callable[[], Any]) -> Any:
    """The answer of a call whose thread talks to the database through this wire."""

    def rerouted() -> Any:
        reroute(str(wire.path.parent))
        return call()

    return aside(rerouted)


# --- a COMMIT whose reply is lost on the wire


@committed
def test_a_lost_commit_reply_is_read_back_as_success(wire: Proxy) -> None:
    good, bad = running(40), running(41)
    batch = [Settlement(good.pk, 40, "succeed", result="1"), outcomes(bad, 41)["fail"]]

    def losing() -> dict[int, Answer]:
        with pytest.raises(OperationalError), ledger.one_commit():  # noqa: PT012 (COMMIT raises)
            ledger.settle(batch)
            wire.drop_replies(1)
        assert aside(lambda: again(good).status) == "SUCCEEDED"
        ledger.forget_connection()
        return settle(batch)

    answers = through(wire, losing)
    assert answers == {
        good.pk: Answer(ledger.SETTLED, "SUCCEEDED", 40),
        bad.pk: Answer(ledger.SETTLED, "FAILED", 41),
    }
    assert [(row.attempts, row.failures) for row in (again(good), again(bad))] == [(1, 0), (1, 1)]
    assert attempts(bad) == [(41, "failed")]


@committed
def test_a_lost_reply_to_begin_is_read_back(wire: Proxy) -> None:
    runs = new(3)
    lost = running(40, alone=True)
    asked = [beginning(run, 100 + place) for place, run in enumerate(runs)]
    counted = [beginning(lost, 104, lost=True, counted=True, alone=True)]

    def losing() -> None:
        for batch in (asked, counted):
            connection.ensure_connection()
            wire.drop_replies(1)
            with pytest.raises(OperationalError):
                ledger.begin(batch)
            ledger.forget_connection()
            assert ledger.begin(batch) == {one.row.id for one in batch}

    through(wire, losing)
    assert {again(run).status for run in runs} == {"RUNNING"}
    assert again(lost).losses == 1
    assert attempts(lost) == [(40, "lost")]


BAD_VALUES: dict[str, dict[str, Any]] = {
    "nul in a result": {"transition": "succeed", "result": '"a\\u0000b"'},
    "lone surrogate in a result": {"transition": "succeed", "result": '"\\ud800"'},
    "NaN in a result": {"transition": "succeed", "result": "NaN"},
    "result that is no JSON": {"transition": "succeed", "result": "{"},
    "nul in a reason": {"transition": "cancel", "reason": "a\0b"},
    "surrogate in an error": {"transition": "fail", "error": {"message": "\ud800"}},
    "nul in an error": {"transition": "fail", "error": {"message": "a\0b"}},
    "nul in the log": {"transition": "fail", "error": {}, "attempt": Attempt(0, 0, "failed", message="a\0b")},
    "surrogate in the log": {"transition": "fail", "error": {}, "attempt": Attempt(0, 0, "failed", traceback="\udfff")},
    "a delay that is no number of seconds": {"transition": "retry", "delay": 1e20},
}


# --- one bad value never blocks its batch


@committed
@pytest.mark.parametrize("name", BAD_VALUES)
def test_one_bad_value_does_not_block_its_batch(name: str) -> None:
    mates = [running(40 + place) for place in range(5)]
    offender, last = running(50), running(51)
    change(last, args=F("args"))
    bad = dict(BAD_VALUES[name])
    if attempt := bad.get("attempt"):
        bad["attempt"] = replace(attempt, run=offender.pk, fence=50)
    settlements = [Settlement(run.pk, run.fence, "succeed", result="1") for run in mates]
    settlements += [Settlement(offender.pk, 50, **bad), Settlement(last.pk, 51, "succeed", result='"last"')]
    rows = ledger.load(QUEUE, [settlement.run for settlement in settlements])
    told = moves.settle(QUEUE, [(rows[settlement.run], settlement) for settlement in settlements])
    assert {again(run).status for run in mates} == {"SUCCEEDED"}
    assert again(last).result == "last"
    row = again(offender)
    assert row.status in lifecycle.TERMINAL
    assert {settled.outcome.verb for settled in told.values()} == {"done"}
    assert set(told) == {settlement.run for settlement in settlements}
    taken = told[offender.pk].settlement
    assert taken
    assert lifecycle.TRANSITIONS[taken.transition].target == row.status, "what is announced is what was written"
    if row.status == "FAILED":
        assert isinstance(row.error, dict)
        json.dumps(row.error).encode("ascii")
        assert "\0" not in json.dumps(row.error)
        assert attempts(offender) in ([(50, "failed")], [])
    assert row.attempts == 1
