"""Batches begin: one statement, each row exactly as it was seen; a loss is counted once."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from groupjobs import ledger, moves
from groupjobs.ledger import Answer, Settlement
from groupjobs.models import JobRun
from tests.core.rows import (
    again,
    attempts,
    beginning,
    change,
    new,
    race,
    running,
    settle,
    values,
)

committed = pytest.mark.django_db(transaction=True)
rolled_back = pytest.mark.django_db
ROUNDS = 8  # of each race


# --- begin


@committed
def test_begin_writes_the_whole_batch_with_one_statement() -> None:
    runs = new(20)
    asked = [beginning(run, 100 + place) for place, run in enumerate(runs)]
    with CaptureQueriesContext(connection) as queries:
        assert ledger.begin(asked) == {run.pk for run in runs}
    assert len(queries) == 1
    for place, run in enumerate(runs):
        row = again(run)
        assert (row.status, row.fence, row.alone) == ("RUNNING", 100 + place, False)
        assert (row.worker, row.consumer) == ("here:2:new", "new")
        assert row.started_at is not None
        assert row.last_attempted_at is not None


@rolled_back
@pytest.mark.parametrize(
    "moved",
    [
        {"status": "CANCELLED"},
        {"status": "SUCCEEDED", "fence": 60},
        {"fence": 45},
        {"status": "RUNNING", "fence": 45, "consumer": "other"},
        {"status": "RUNNING", "fence": 100, "consumer": "other"},
        {"status": "RUNNING", "fence": 200, "consumer": "new"},
    ],
)
def test_a_row_that_moved_since_it_was_seen_is_not_begun(moved: dict[str, Any]) -> None:
    one, two, three = new(3)
    asked = [beginning(run, 100 + place) for place, run in enumerate((one, two, three))]
    change(two, **moved)
    before = values(two)
    assert ledger.begin(asked) == {one.pk, three.pk}
    assert values(two) == before
    assert again(one).status == again(three).status == "RUNNING"


@rolled_back
def test_a_row_that_was_deleted_since_is_not_begun() -> None:
    one, two = new(2)
    asked = [beginning(one, 100), beginning(two, 101)]
    one.delete()
    assert ledger.begin(asked) == {two.pk}


@rolled_back
def test_begin_again_after_a_lost_reply_answers_the_same() -> None:
    run, lost = new()[0], running(40, alone=True)
    asked = [beginning(run, 100), beginning(lost, 101, lost=True, counted=True)]
    assert ledger.begin(asked) == {run.pk, lost.pk}
    before = values(run), values(lost)
    assert ledger.begin(asked) == {run.pk, lost.pk}
    assert (values(run), values(lost)) == before
    assert before[1]["losses"] == 1
    assert attempts(lost) == [(40, "lost")]


@committed
def test_two_consumers_race_to_begin_one_run() -> None:
    for turn in range(ROUNDS):
        [run] = new()
        base = 1000 * (turn + 1)
        asked = [beginning(run, base + place, consumer=f"c{place}") for place in range(2)]
        one, two = race(*(partial(ledger.begin, [one]) for one in asked))
        assert (run.pk in one) is not (run.pk in two)
        winner = 0 if run.pk in one else 1
        row = again(run)
        assert (row.status, row.fence, row.consumer) == ("RUNNING", base + winner, f"c{winner}")


@committed
def test_overlapping_batches_race_without_a_deadlock() -> None:
    for turn in range(ROUNDS):
        runs = new(30)
        base = 1000 * (turn + 1)
        batches = [[beginning(run, base + 100 * c + n, consumer=f"c{c}") for n, run in enumerate(runs)] for c in (0, 1)]
        random.Random(turn).shuffle(batches[1])
        one, two = race(*(partial(ledger.begin, batch) for batch in batches))
        assert one | two == {run.pk for run in runs}
        assert not one & two
        assert {run: row.consumer for run, row in JobRun.objects.in_bulk(one | two).items()} == {
            **dict.fromkeys(one, "c0"),
            **dict.fromkeys(two, "c1"),
        }


@committed
def test_a_late_settle_races_with_the_next_begin() -> None:
    """Whoever comes first wins whole: either the success stands, or the next attempt and its counted loss."""
    for turn in range(ROUNDS):
        run = running(40, alone=True)
        asked = beginning(run, 50 + turn, lost=True, counted=True)
        done = Settlement(run.pk, 40, "succeed", result='"old"')
        calls: list[Callable[[], Any]] = [partial(ledger.begin, [asked]), partial(settle, [done])]
        begun, answers = race(*calls)
        row = again(run)
        if run.pk in begun:
            assert answers == {run.pk: Answer(ledger.LATE, "RUNNING", 50 + turn)}
            assert (row.status, row.fence, row.losses, row.result) == ("RUNNING", 50 + turn, 1, None)
            assert attempts(run) == [(40, "lost")]
        else:
            assert answers[run.pk].word == ledger.SETTLED
            assert (row.status, row.fence, row.losses, row.result) == ("SUCCEEDED", 40, 0, "old")
            assert attempts(run) == []


# --- a loss is counted once, on every path


@committed
@pytest.mark.parametrize("alone", [True, False])
def test_a_loss_is_counted_once_whoever_notices_it(alone: bool) -> None:
    """A consumer that begins the next attempt and two recoveries notice the same lost attempt."""
    for turn in range(ROUNDS):
        run = running(40, alone=alone)
        asked = beginning(run, 50 + turn, lost=True, counted=alone, alone=True)
        lose: Callable[[], Any] = partial(ledger.transit, "lose", run.pk, "RUNNING", 40, suspect=True, lost=alone)
        begun, *lost = race(partial(ledger.begin, [asked]), lose, lose)
        assert [bool(begun), *lost].count(True) == 1
        row = again(run)
        assert row.losses == row.attempts == int(alone)
        assert row.alone
        assert (row.status, row.fence) == (("RUNNING", 50 + turn) if begun else ("READY", 40))


@committed
def test_two_recoveries_lose_one_run() -> None:
    for _ in range(ROUNDS):
        run = running(40, alone=True)
        words = race(*(partial(moves.lose, again(run), counted=True, reason="gone") for _ in range(2)))
        assert sorted(words) == ["", "requeued"]
        row = again(run)
        assert (row.status, row.fence, row.losses, row.attempts, row.alone) == ("READY", 40, 1, 1, True)
        assert attempts(run) == [(40, "lost")]
