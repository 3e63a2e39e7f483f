"""Every transition on a real row; batches as a consumer loads them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now

from groupjobs import ledger, lifecycle
from groupjobs.ledger import Attempt, Batch
from groupjobs.models import JobRun
from tests.core.rows import (
    NOOP,
    QUEUE,
    again,
    attempts,
    change,
    new,
    values,
)
from tests.core.test_lifecycle import CELLS

committed = pytest.mark.django_db(transaction=True)
rolled_back = pytest.mark.django_db
REVIVE = [cell for cell in CELLS if cell[0] == "revive" and cell[2] != "-"]


# --- transit: every cell on a real row


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


def ahead(run: JobRun, *batch: JobRun) -> int | None:
    return ledger.load(QUEUE, [run.pk, *(mate.pk for mate in batch)])[run.pk].ahead


# --- load


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
