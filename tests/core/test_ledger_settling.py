"""Outcomes under exactly the fence that their attempt began with, and give-backs."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from groupjobs import ledger
from groupjobs.ledger import Answer, Batch, Settlement
from groupjobs.models import JobRun
from tests.core.rows import (
    NOOP,
    QUEUE,
    again,
    attempts,
    change,
    outcomes,
    race,
    running,
    settle,
    values,
)

committed = pytest.mark.django_db(transaction=True)
rolled_back = pytest.mark.django_db
ROUNDS = 8  # of each race


NAMES = tuple(outcomes(JobRun(id=1)))
MOVED = [
    ({"status": "RUNNING", "fence": 41}, "late"),
    ({"status": "READY", "fence": 41}, "late"),
    ({"status": "SUCCEEDED", "fence": 41}, "gone"),
    ({"status": "FAILED", "fence": 41}, "gone"),
    ({"status": "ABANDONED", "fence": 41}, "gone"),
    ({"status": "CANCELLED", "fence": 41}, "gone"),
]


# --- settle


@rolled_back
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("actual", "word"), MOVED)
def test_b2_a_stale_fence_changes_nothing(name: str, actual: dict[str, Any], word: str) -> None:
    run = change(running(40), **actual)
    before = values(run)
    assert settle([outcomes(run)[name]]) == {run.pk: Answer(word, actual["status"], actual["fence"])}
    assert values(run) == before
    assert attempts(run) == []


@rolled_back
@pytest.mark.parametrize("name", [name for name in NAMES if name != "abandon"])
def test_a_run_that_was_abandoned_under_its_own_fence_stays_so(name: str) -> None:
    run = change(running(40), status="ABANDONED")
    before = values(run)
    assert settle([outcomes(run)[name]]) == {run.pk: Answer(ledger.GONE, "ABANDONED", 40)}
    assert values(run) == before


@rolled_back
@pytest.mark.parametrize("name", NAMES)
def test_a_settled_outcome_is_settled_again_without_a_change(name: str) -> None:
    """A COMMIT whose reply was lost: the same outcome comes once more."""
    run = running(40)
    settlement = outcomes(run)[name]
    first = settle([settlement])
    assert first[run.pk].word == ledger.SETTLED
    before = values(run)
    assert settle([settlement]) == first
    assert values(run) == before
    assert len(attempts(run)) == (name in ("fail", "retry"))


@rolled_back
@pytest.mark.parametrize("name", NAMES)
def test_a_deleted_row_is_gone(name: str) -> None:
    run = running(40)
    settlement = outcomes(run)[name]
    JobRun.objects.all().delete()
    assert settle([settlement])[run.pk].word == ledger.GONE


@committed
def test_a_mixed_batch_is_settled_in_one_commit_and_every_row_gets_its_own() -> None:
    runs = {name: running(40 + place) for place, name in enumerate(NAMES)}
    successes = [running(60 + place) for place in range(20)]
    batch = [outcomes(run, run.fence)[name] for name, run in runs.items()]
    batch += [Settlement(run.pk, run.fence, "succeed", result=json.dumps(run.pk)) for run in successes]
    random.Random(1).shuffle(batch)
    with CaptureQueriesContext(connection) as queries:
        answers = settle(batch)
    assert {answer.word for answer in answers.values()} == {ledger.SETTLED}
    successful = [query["sql"] for query in queries.captured_queries if "SUCCEEDED" in query["sql"]]
    assert len(successful) == 1
    assert [again(run).result for run in successes] == [run.pk for run in successes]
    rows = {name: again(run) for name, run in runs.items()}
    assert {name: row.status for name, row in rows.items()} == {
        "succeed": "SUCCEEDED",
        "fail": "FAILED",
        "retry": "READY",
        "cancel": "CANCELLED",
        "abandon": "ABANDONED",
        "give_back": "READY",
    }
    assert {name: row.attempts for name, row in rows.items()} == {**dict.fromkeys(NAMES, 1), "give_back": 0}
    assert {name: row.failures for name, row in rows.items() if row.failures} == {"fail": 1, "retry": 1}
    due, retried = rows["retry"].run_after, rows["retry"].attempt_log.get().finished_at
    assert due is not None
    assert timedelta(seconds=29) < due - retried < timedelta(seconds=31)


@rolled_back
def test_a_retry_of_a_run_that_somebody_cancelled_is_a_cancel() -> None:
    run = running(40, cancel_requested_at=Now())
    assert settle([outcomes(run)["retry"]]) == {run.pk: Answer(ledger.SETTLED, "CANCELLED", 40)}
    assert again(run).status == "CANCELLED"


@rolled_back
def test_settling_frees_the_dedup_key() -> None:
    batch = Batch(QUEUE, NOOP, [("g", "[]", "{}", "key")])
    for name in ("succeed", "fail", "cancel", "abandon"):
        [run] = ledger.insert(batch)
        change(run, status="RUNNING", fence=40)
        settle([outcomes(run)[name]])
        assert again(run).dedup_key is None


# --- give back


@rolled_back
def test_give_back_counts_nothing_and_leaves_the_hint() -> None:
    for alone in (True, False):
        run = running(40, alone=alone, losses=1, failures=2, attempts=3)
        assert ledger.give_back({run.pk: 40}) == {run.pk: Answer(ledger.SETTLED, "READY", 40)}
        row = again(run)
        assert (row.status, row.fence, row.alone) == ("READY", 40, alone)
        assert (row.losses, row.failures, row.attempts) == (1, 2, 3)
        assert attempts(run) == []


@rolled_back
def test_give_back_touches_only_rows_under_its_own_fences() -> None:
    mine, late, ended, waits = running(40), running(51), running(42), running(43)
    change(ended, status="SUCCEEDED")
    change(waits, status="READY")
    gone = max(mine.pk, late.pk, ended.pk, waits.pk) + 1000
    before = values(late), values(ended), values(waits)
    answers = ledger.give_back({mine.pk: 40, late.pk: 41, ended.pk: 42, waits.pk: 43, gone: 44})
    assert {run: answer.word for run, answer in answers.items()} == {
        mine.pk: ledger.SETTLED,
        late.pk: ledger.LATE,
        ended.pk: ledger.GONE,
        waits.pk: ledger.SETTLED,
        gone: ledger.GONE,
    }
    assert again(mine).status == "READY"
    assert (values(late), values(ended), values(waits)) == before


@committed
def test_give_back_and_success_race_for_one_run() -> None:
    for turn in range(ROUNDS):
        run = running(40 + turn)
        back, done = race(
            partial(ledger.give_back, {run.pk: run.fence}),
            partial(settle, [Settlement(run.pk, run.fence, "succeed")]),
        )
        words = {back[run.pk].word, done[run.pk].word}
        row = again(run)
        assert words == ({ledger.SETTLED, ledger.GONE} if row.status == "SUCCEEDED" else {ledger.SETTLED, ledger.LATE})
