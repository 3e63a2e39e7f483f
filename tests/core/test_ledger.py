"""The only writer of rows: exact predicates on real connections, and what a bad value or a lost reply does."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from groupjobs import ledger, lifecycle, moves
from groupjobs.ledger import Answer, Attempt, Batch, Settlement
from groupjobs.models import JobAttempt, JobProgress, JobRun
from tests.core.rows import (
    NOOP,
    QUEUE,
    again,
    aside,
    attempts,
    beginning,
    change,
    new,
    race,
    reroute,
    running,
    settle,
    values,
)
from tests.core.test_lifecycle import CELLS
from tests.servers.wire import Proxy

committed = pytest.mark.django_db(transaction=True)
rolled_back = pytest.mark.django_db
ROUNDS = 8  # of each race


def inserts(queries: CaptureQueriesContext, table: str) -> int:
    return sum(f"insert into {table}" in query["sql"].lower().replace('"', "") for query in queries.captured_queries)


# --- insert


@rolled_back
@pytest.mark.parametrize(("count", "statements"), [(0, 0), (1, 1), (1000, 1), (1001, 2), (2500, 3)])
def test_insert_takes_one_statement_a_thousand(count: int, statements: int) -> None:
    lines = [(f"g{number % 7}", json.dumps([number]), "{}", None) for number in range(count)]
    with CaptureQueriesContext(connection) as queries:
        runs = ledger.insert(Batch(QUEUE, NOOP, lines))
    assert inserts(queries, "groupjobs_jobrun ") == statements
    assert inserts(queries, "groupjobs_jobprogress ") == statements
    assert [run.args for run in runs] == [[number] for number in range(count)]
    ids = [run.pk for run in runs]
    assert ids == sorted(set(ids))
    assert dict(JobRun.objects.values_list("id", "args")) == {run.pk: run.args for run in runs}
    assert dict(JobRun.objects.values_list("id", "group")) == {run.pk: run.group for run in runs}


@rolled_back
def test_each_run_has_its_progress_row() -> None:
    runs = new(3)
    found = JobProgress.objects.order_by("pk")
    assert [row.run_id for row in found] == [run.pk for run in runs]
    assert {(row.done, row.total, row.message, row.phase, row.updated_at) for row in found} == {(0, None, "", "", None)}


NOON = datetime(2031, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"run_after": NOON, "expires": NOON + timedelta(days=1), "labels": {"tenant": "é☃", "n": [1, None, 2.5]}},
    {"priority": 100, "order": 2**53, "max_attempts": 7, "max_losses": 0, "after_failure": "cancel"},
    {"priority": -100, "order": -(2**53), "on_retry": "yield", "atomic": True},
    {"time_limit": 1.5, "soft_time_limit": 0.25},
]


@rolled_back
@pytest.mark.parametrize("options", OPTIONS)
def test_insert_answers_the_rows_as_they_are(options: dict[str, Any]) -> None:
    text, big = "línea ☃ 𝄞 ' \" \\ % %s {} [group]", 12345678901234567890
    line = (text, json.dumps([text, big, 1.5, None, True, {"a": [{}]}]), json.dumps({"key": text}), f"once:{text}")
    [run] = ledger.insert(Batch(QUEUE, "tests.é", [line], **options))
    found = values(run)
    expires = found.pop("expires_at")
    assert expires == options.get("expires")
    assert {name: getattr(run, name) for name in found} == found
    assert found["group"] == text
    assert found["args"] == [text, big, 1.5, None, True, {"a": [{}]}]
    assert (found["status"], found["fence"], found["life"], found["unpublished"]) == ("READY", 0, 1, False)
    assert found["yields"] is ("run_after" in options)


@rolled_back
def test_expiry_in_seconds_counts_from_the_database_s_now() -> None:
    [run] = new(expires=90.5)
    row = again(run)
    assert row.expires_at is not None
    assert abs(row.expires_at - row.enqueued_at - timedelta(seconds=90.5)) < timedelta(seconds=0.1)
    seen = ledger.load(QUEUE, [run.pk])[run.pk]
    assert not seen.expired
    change(run, expires_at=Now() - timedelta(seconds=1))
    assert ledger.load(QUEUE, [run.pk])[run.pk].expired


@rolled_back
def test_a_group_of_255_characters_of_any_kind_fits() -> None:
    for character in ("x", "é", "☃", "𝄞"):
        [run] = new(group=character * 255)
        assert again(run).group == character * 255


@committed
def test_insert_is_part_of_the_caller_s_transaction() -> None:
    with transaction.atomic():
        new(3)
        transaction.set_rollback(True)
    with transaction.atomic():
        [kept] = new()
        with transaction.atomic():
            new(2)
            transaction.set_rollback(True)
        if connection.vendor != "sqlite":  # whose only writer holds the lock
            assert aside(JobRun.objects.count) == 0
    assert list(aside(lambda: list(JobRun.objects.values_list("id", flat=True)))) == [kept.pk]
    assert JobProgress.objects.count() == 1


@rolled_back
def test_insert_is_all_or_nothing_over_the_thousands() -> None:
    lines = [("g", "[]", "{}", f"key {number}") for number in range(1500)] + [("g", "[]", "{}", "key 0")]
    with pytest.raises(IntegrityError):
        ledger.insert(Batch(QUEUE, NOOP, lines))
    assert JobRun.objects.count() == JobProgress.objects.count() == 0


# --- what a row refuses


@rolled_back
@pytest.mark.parametrize("status", lifecycle.STATUSES)
def test_finished_at_belongs_to_exactly_the_terminal_statuses(status: str) -> None:
    [run] = new()
    wrong = None if status in lifecycle.TERMINAL else Now()
    with pytest.raises(IntegrityError), transaction.atomic():
        JobRun.objects.filter(pk=run.pk).update(status=status, finished_at=wrong)
    right = Now() if status in lifecycle.TERMINAL else None
    JobRun.objects.filter(pk=run.pk).update(status=status, finished_at=right)


@rolled_back
def test_a_status_of_another_name_is_refused() -> None:
    [run] = new()
    for finished in (None, Now()):
        with pytest.raises(IntegrityError), transaction.atomic():
            JobRun.objects.filter(pk=run.pk).update(status="DONE", finished_at=finished)


@rolled_back
def test_h1_a_dedup_key_is_unique_in_its_queue_and_only_while_live() -> None:
    batch = Batch(QUEUE, NOOP, [("g", "[]", "{}", "key")])
    [run] = ledger.insert(batch)
    with pytest.raises(IntegrityError), transaction.atomic():
        ledger.insert(batch)
    ledger.insert(replace(batch, lines=[("g", "[]", "{}", "KEY")]))
    ledger.insert(replace(batch, queue="other"))
    with pytest.raises(IntegrityError), transaction.atomic():
        JobRun.objects.filter(pk=run.pk).update(status="SUCCEEDED", finished_at=Now())
    assert ledger.transit("cancel", run.pk, "READY", 0)
    ledger.insert(batch)


@rolled_back
def test_an_attempt_is_logged_once_per_fence() -> None:
    run = running()
    for _ in range(2):
        ledger.record([Attempt(run.pk, 40, "failed", message="first"), Attempt(run.pk, 41, "lost")])
    ledger.record([Attempt(run.pk, 40, "lost", message="second")])
    assert attempts(run) == [(40, "failed"), (41, "lost")]
    assert JobAttempt.objects.get(run=run, fence=40).message == "first"


# --- transit: every cell on a real row

REVIVE = [cell for cell in CELLS if cell[0] == "revive" and cell[2] != "-"]


@rolled_back
@pytest.mark.parametrize(("name", "status", "target"), [cell for cell in CELLS if cell not in REVIVE])
def test_transit(name: str, status: str, target: str) -> None:
    [run] = new()
    run = change(run, status=status, fence=40)
    before = values(run)
    if target == "-":
        with pytest.raises(ValueError, match=f"{status} cannot {name}"):
            ledger.transit(name, run.pk, status, 40)
        assert values(run) == before
        return
    wrong_fences = [ledger.transit(name, run.pk, status, fence) for fence in (39, 41, 0)]
    other = "READY" if status == "RUNNING" else "RUNNING"
    wrong_status = lifecycle.allowed(name, other) and ledger.transit(name, run.pk, other, 40)
    assert not any(wrong_fences)
    assert not wrong_status
    assert values(run) == before
    assert ledger.transit(name, run.pk, status, 40, reason="why")
    found = again(run)
    assert (found.status, found.reason, found.fence) == (target, "why", 40)
    assert (found.finished_at is not None) is (target in lifecycle.TERMINAL)


# --- load


def ahead(run: JobRun, *batch: JobRun) -> int | None:
    return ledger.load(QUEUE, [run.pk, *(mate.pk for mate in batch)])[run.pk].ahead


@rolled_back
def test_the_earliest_live_run_of_the_group_is_ahead() -> None:
    first, second, third = new(3)
    assert [ahead(run) for run in (first, second, third)] == [None, first.pk, first.pk]
    assert ahead(third, first) == second.pk
    assert ahead(third, first, second) is None
    change(first, status="RUNNING", fence=40)
    assert ahead(third) == first.pk
    change(first, status="SUCCEEDED")
    assert ahead(third) == second.pk


@rolled_back
def test_order_comes_before_the_id() -> None:
    [late] = new(order=5)
    [early] = new(order=-(2**53))
    [middle] = new()
    [last] = new(order=2**53)
    assert [ahead(run) for run in (early, middle, late, last)] == [None, early.pk, early.pk, early.pk]
    assert ahead(late, early) == middle.pk
    assert ahead(last, early, middle) == late.pk


@rolled_back
def test_what_is_not_ahead() -> None:
    far = in_seconds(60)
    [scheduled] = new(run_after=far)
    [backing_off] = new()
    change(backing_off, run_after=far, yields=True)
    new(group="G")
    new(group="g ")
    new(group="")
    ledger.insert(Batch("other", NOOP, [("g", "[]", "{}", None)]))
    [run] = new()
    [ungrouped] = new(group="")
    assert ahead(run) is None
    assert ahead(ungrouped) is None
    change(backing_off, yields=False)  # a retry that keeps its place blocks its group
    assert ahead(run) == backing_off.pk
    change(scheduled, run_after=in_seconds(-1))
    assert ahead(run) == scheduled.pk


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


@rolled_back
def test_load_answers_rows_of_its_queue_only() -> None:
    [other] = ledger.insert(Batch("other", NOOP, [("g", "[]", "{}", None)]))
    [mine] = new()
    assert set(ledger.load(QUEUE, [other.pk, mine.pk, mine.pk + 1000])) == {mine.pk}


@committed
def test_loading_costs_the_same_in_front_of_a_long_line() -> None:
    heads, all_there_is = new(20_000)[:64], new(64, group="short")

    def seconds(runs: list[JobRun]) -> float:
        before = time.perf_counter()
        rows = ledger.load(QUEUE, [run.pk for run in runs])
        assert {row.ahead for row in rows.values()} == {None}
        return time.perf_counter() - before

    long, short = zip(*[(seconds(heads), seconds(all_there_is)) for _ in range(5)], strict=True)
    assert min(long) < 5 * min(short)  # reading the line for each of them takes a hundred times as long


@rolled_back
@pytest.mark.parametrize("status", lifecycle.STATUSES)
def test_revive(status: str) -> None:
    """Only what has ended begins a new life: budgets start anew, the fence and the history stay."""
    [run] = new()
    ended = {"finished_at": Now(), "report_attempts": 3, "abandon_reported_at": Now(), "report_after": Now()}
    spent = {"attempts": 3, "failures": 2, "losses": 1, "alone": True, "fence": 40, "error": {"class": "E"}}
    run = change(run, status=status, **spent, **(ended if status in lifecycle.TERMINAL else {}))
    ledger.record([Attempt(run.pk, 40, "failed")])
    before = values(run)
    seen = again(run)
    assert ledger.revive(seen, "by hand") is (status in lifecycle.TERMINAL)
    if status not in lifecycle.TERMINAL:
        assert values(run) == before
        return
    row = again(run)
    assert (row.status, row.life, row.fence) == ("READY", 2, 40)
    assert (row.attempts, row.failures, row.losses, row.report_attempts) == (0, 0, 0, 0)
    assert (row.finished_at, row.abandon_reported_at, row.report_after, row.error) == (None, None, None, None)
    assert attempts(run) == [(40, "failed")]
    assert not ledger.revive(seen, "the second click")
    assert again(run).life == 2


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


# --- settle


def outcomes(run: JobRun, fence: int = 40) -> dict[str, Settlement]:
    log = Attempt(run.pk, fence, "failed", error_class="builtins.ValueError", message="no")
    return {
        "succeed": Settlement(run.pk, fence, "succeed", result='{"a": 1}'),
        "fail": Settlement(run.pk, fence, "fail", error={"class": "E"}, failed=True, attempt=log),
        "retry": Settlement(run.pk, fence, "retry", delay=30, failed=True, attempt=log),
        "cancel": Settlement(run.pk, fence, "cancel", reason="no more"),
        "abandon": Settlement(run.pk, fence, "abandon", reason="poison"),
        "give_back": Settlement(run.pk, fence, "give_back", tried=False),
    }


NAMES = tuple(outcomes(JobRun(id=1)))


MOVED = [
    ({"status": "RUNNING", "fence": 41}, "late"),
    ({"status": "READY", "fence": 41}, "late"),
    ({"status": "SUCCEEDED", "fence": 41}, "gone"),
    ({"status": "FAILED", "fence": 41}, "gone"),
    ({"status": "ABANDONED", "fence": 41}, "gone"),
    ({"status": "CANCELLED", "fence": 41}, "gone"),
]


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


# --- a COMMIT whose reply is lost on the wire


def through(wire: Proxy, call: Callable[[], Any]) -> Any:
    """The answer of a call whose thread talks to the database through this wire."""

    def rerouted() -> Any:
        reroute(str(wire.path.parent))
        return call()

    return aside(rerouted)


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


# --- one bad value never blocks its batch

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
    assert {outcome.verb for outcome in told.values()} == {"done"}
    assert set(told) == {settlement.run for settlement in settlements}
    if row.status == "FAILED":
        assert isinstance(row.error, dict)
        json.dumps(row.error).encode("ascii")
        assert "\0" not in json.dumps(row.error)
        assert attempts(offender) in ([(50, "failed")], [])
    assert row.attempts == 1
