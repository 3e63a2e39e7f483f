"""The helpers for users' tests: with no Redis, inside Django's TestCase and with pytest."""

from __future__ import annotations

import datetime as dt
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from django.db import transaction
from django.test import TestCase, TransactionTestCase, override_settings
from django.utils import timezone

from groupjobs import control, testing
from groupjobs.models import JobRun
from groupjobs.signals import run_abandoned
from tests.core.rows import again, change
from tests.jobsapp.jobs import (
    breaks_at_commit,
    counts,
    fails,
    flaky,
    gives_up,
    note,
    parent,
    wants_a_person,
    writes,
    writes_and_fails,
)
from tests.jobsapp.models import Written
from tests.semantics.jobs import calls_back, coalesced, enqueues_itself, leaves_a_transaction, slow_to_retry

pytestmark = pytest.mark.api

pytest_plugins = ["groupjobs.testing.fixtures"]

NOWHERE = {"GROUPJOBS": {"REDIS": "redis://127.0.0.1:1/0"}}


@pytest.fixture(autouse=True)
def no_servers(no_outage: None) -> Any:
    """No Redis at this address, and a broker is never asked for."""
    from groupjobs import bell

    with override_settings(**NOWHERE), mock.patch.object(bell, "_ringer", side_effect=AssertionError("a bell")):
        yield


def status(result: Any) -> str:
    return JobRun.objects.get(pk=result.id).status


class InATestCase(testing.JobsMixin, TestCase):
    def test_runs_by_group_and_order(self) -> None:
        results = [note.enqueue(label, group=group) for label, group in [("a", "g"), ("b", "h"), ("c", "g")]]
        assert [run.status for run in testing.enqueued()] == ["READY"] * 3
        served = testing.drain()
        assert {str(run.pk) for run in served} == {result.id for result in results}
        of_g = [run.result for run in served if run.group == "g"]
        assert of_g == ["a", "c"]
        assert [status(result) for result in results] == ["SUCCEEDED"] * 3
        assert testing.drain() == []

    def test_captured_on_commit_callbacks(self) -> None:
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            result = note.enqueue("a")
            assert status(result) == "READY"
        assert len(callbacks) == 1
        testing.drain()
        assert status(result) == "SUCCEEDED"

    def test_a_rolled_back_enqueue_never_runs(self) -> None:
        with transaction.atomic():
            note.enqueue("a")
            transaction.set_rollback(True)
        assert testing.drain() == []

    def test_failures_are_real(self) -> None:
        failed, retried, cancelled = fails.enqueue("a"), flaky.using(max_attempts=1).enqueue("b"), gives_up.enqueue("c")
        testing.drain()
        assert [status(result) for result in (failed, retried, cancelled)] == ["FAILED", "FAILED", "CANCELLED"]
        failed.refresh()
        assert failed.errors[0].exception_class is ValueError

    def test_back_off_and_run_after_wait_unless_they_are_taken_to_be_due(self) -> None:
        tomorrow = timezone.now() + dt.timedelta(days=1)
        retried, later = slow_to_retry.enqueue("a"), note.using(run_after=tomorrow).enqueue("b")
        assert [run.pk for run in testing.drain()] == [int(retried.id)]
        assert [status(retried), status(later)] == ["READY", "READY"]
        testing.drain(scheduled=True)
        assert [status(retried), status(later)] == ["SUCCEEDED", "SUCCEEDED"]

    def test_a_held_group_waits(self) -> None:
        first, second = wants_a_person.enqueue("a"), note.enqueue("b")
        testing.drain()
        assert [status(first), status(second)] == ["READY", "READY"]
        control.skip_head("default", "g")
        control.resume("default", "g")
        testing.drain()
        assert [status(first), status(second)] == ["CANCELLED", "SUCCEEDED"]

    def test_what_handlers_enqueue_runs_too(self) -> None:
        parent.enqueue("p", children=3)
        served = testing.drain()
        assert [run.result for run in served] == [None, "p.0", "p.1", "p.2"]

    def test_atomic_runs_roll_back_alone(self) -> None:
        good, bad = writes.enqueue("a"), writes_and_fails.using(max_attempts=1).enqueue("b", failures=9)
        testing.drain()
        assert [status(good), status(bad)] == ["SUCCEEDED", "FAILED"]
        assert [written.label for written in Written.objects.all()] == ["a"]

    def test_on_commit_callbacks_of_handlers_are_called(self) -> None:
        result = calls_back.enqueue("a")
        testing.drain()
        assert status(result) == "SUCCEEDED"
        assert [written.label for written in Written.objects.all()] == ["a was committed"]

    def test_a_transaction_left_open_is_a_failure(self) -> None:
        result = leaves_a_transaction.enqueue("a")
        testing.drain()
        assert status(result) == "FAILED"

    def test_progress_is_written(self) -> None:
        result = counts.enqueue(4)
        testing.drain()
        assert JobRun.objects.get(pk=result.id).progress.done == 4

    def test_coalescing(self) -> None:
        first, second = coalesced.enqueue("k"), coalesced.enqueue("k")
        assert first.id == second.id
        assert len(testing.drain()) == 1

    def test_abandonments_are_reported(self) -> None:
        heard: list[Any] = []

        def hear(run: JobRun, reason: str, **_: Any) -> None:
            heard.append((run.pk, reason))

        result = note.enqueue("a")
        change(again(int(result.id)), job="nowhere.to.be.found", enqueued_at="2001-01-01T00:00Z")
        run_abandoned.connect(hear)
        try:
            testing.drain()
        finally:
            run_abandoned.disconnect(hear)
        assert heard == [(int(result.id), "unknown_job")]
        assert JobRun.objects.get(pk=result.id).abandon_reported_at

    def test_a_job_without_end_is_noticed(self) -> None:
        enqueues_itself.enqueue(0)
        with pytest.raises(AssertionError, match=r"drain.. has begun 20 runs"):
            testing.drain(limit=20)

    def test_one_queue(self) -> None:
        with override_settings(GROUPJOBS={**NOWHERE["GROUPJOBS"], "QUEUES": ["default", "other"]}):
            result = note.enqueue("a")
            assert testing.drain("other") == []
            assert testing.drain("default")
        assert status(result) == "SUCCEEDED"


class Immediately(testing.JobsMixin, TestCase):
    def test_enqueue_runs_at_once(self) -> None:
        with testing.immediate():
            result = parent.enqueue("p", children=2)
            assert status(result) == "SUCCEEDED"
            assert JobRun.objects.filter(status="SUCCEEDED").count() == 3
        assert status(note.enqueue("later")) == "READY"

    def test_not_before_the_block_has_ended(self) -> None:
        with testing.immediate(), self.captureOnCommitCallbacks(execute=True):
            with transaction.atomic():
                result = note.enqueue("a")
                assert status(result) == "READY"
            assert status(result) == "READY"
        assert status(result) == "SUCCEEDED"


class WithTransactions(testing.JobsMixin, TransactionTestCase):
    def test_immediate_runs_after_the_commit(self) -> None:
        with testing.immediate():
            with transaction.atomic():
                result = note.enqueue("a")
                assert status(result) == "READY"
            assert status(result) == "SUCCEEDED"
            with transaction.atomic():
                lost = note.enqueue("b")
                transaction.set_rollback(True)
        assert not JobRun.objects.filter(pk=lost.id).exists()

    def test_an_error_at_commit(self) -> None:
        result = breaks_at_commit.using(max_attempts=1).enqueue("a")
        testing.drain()
        assert status(result) == "FAILED"
        assert not Written.objects.exists()


# --- with pytest


@pytest.mark.django_db
def test_the_fixture(groupjobs: ModuleType) -> None:
    result = note.enqueue("a", group="x")
    [run] = groupjobs.assert_enqueued(note, {"label": "a"}, group="x", count=1)
    assert str(run.pk) == result.id
    groupjobs.drain()
    groupjobs.assert_nothing_enqueued()
    assert status(result) == "SUCCEEDED"


@pytest.mark.django_db
def test_assertions_say_what_waits(groupjobs: ModuleType) -> None:
    note.enqueue("a", group="x")
    with pytest.raises(
        AssertionError, match=r"2 runs of .*note with .* expected, 1 found. Waiting: .*note args=\['a'\]"
    ):
        groupjobs.assert_enqueued(note, {"group": "x"}, count=2)
    with pytest.raises(AssertionError, match=r"a run of .*fails with .* expected, 0 found"):
        groupjobs.assert_enqueued(fails)
    with pytest.raises(AssertionError, match="No run expected, 1 found"):
        groupjobs.assert_nothing_enqueued()
    groupjobs.assert_nothing_enqueued(fails)


@pytest.mark.django_db
def test_drain_alone_needs_no_fixture() -> None:
    with testing.in_memory():
        result = note.enqueue("a")
    testing.drain()
    assert status(result) == "SUCCEEDED"
