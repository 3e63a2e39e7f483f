"""Rows as they are inserted, and what a row refuses to be."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from groupjobs import ledger, lifecycle
from groupjobs.ledger import Attempt, Batch
from groupjobs.models import JobAttempt, JobProgress, JobRun
from tests.core.rows import (
    NOOP,
    QUEUE,
    again,
    aside,
    attempts,
    change,
    new,
    running,
    values,
)

committed = pytest.mark.django_db(transaction=True)
rolled_back = pytest.mark.django_db


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
