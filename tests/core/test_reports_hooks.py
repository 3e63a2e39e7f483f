"""Hooks that raise, hang, or write: each report is made, and delays no other."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.db.models.functions import Now

from groupjobs import control, recovery, reports
from groupjobs.models import JobRun
from groupjobs.signals import run_abandoned
from groupjobs.store import Store
from tests.core.ghosts import abandoned, lost, row
from tests.core.rows import QUEUE, change, race
from tests.core.serving import drain, pk_of
from tests.core.told import told
from tests.jobsapp import jobs
from tests.jobsapp.models import Written
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
Journal = Callable[[], list[list[Any]]]


def due(run: Any) -> JobRun:
    """The pause until its next report is over."""
    return change(row(run), report_after=Now() - timedelta(seconds=1))


# --- hooks that raise or hang


def test_d9_a_hook_that_raises_is_called_again_later_and_delays_no_other(
    store: Store, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    [bad], [good] = abandoned(jobs.badly_reported), abandoned(jobs.precious)
    assert reports.deliver(QUEUE) == 1
    assert row(good).abandon_reported_at is not None
    seen = row(bad)
    assert (seen.abandon_reported_at, seen.report_attempts) == (None, 1)
    assert seen.report_after is not None
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert f"run {bad.pk}" in record.getMessage()
    assert reports.deliver(QUEUE) == 0, "its pause is not over"
    assert told(journal) == {bad.pk: 1, good.pk: 1}
    pauses = []
    for _ in range(3):
        due(bad)
        reports.deliver(QUEUE)
        seen = JobRun.objects.annotate(now=Now()).get(pk=bad.pk)
        assert seen.report_after is not None
        pauses.append((seen.report_after - seen.now).total_seconds())
    assert told(journal)[bad.pk] == 4
    assert pauses == sorted(pauses)
    assert pauses[-1] > 2 * pauses[0]


def test_a_receiver_that_raises_is_called_again_later(store: Store, journal: Journal) -> None:
    def broken(**_: Any) -> None:
        raise ValueError("the receiver is broken")

    [run] = abandoned(jobs.precious)
    run_abandoned.connect(broken)
    try:
        assert reports.deliver(QUEUE) == 0
    finally:
        run_abandoned.disconnect(broken)
    assert row(run).abandon_reported_at is None
    due(run)
    assert reports.deliver(QUEUE) == 1
    assert told(journal) == {run.pk: 2}


def test_d7_a_report_is_parked_after_its_tries_and_cleared_by_a_new_life(store: Store, journal: Journal) -> None:
    [run] = abandoned(jobs.badly_reported)
    for _ in range(reports.PARKED + 3):
        due(run)
        reports.deliver(QUEUE)
    assert told(journal) == {run.pk: reports.PARKED}
    assert (row(run).report_attempts, row(run).abandon_reported_at) == (reports.PARKED, None)
    assert control.retry([run.pk]).changed == [run.pk]
    fresh = row(run)
    assert (fresh.report_attempts, fresh.report_after, fresh.abandon_reported_at) == (0, None, None)
    change(fresh, status="ABANDONED")
    reports.deliver(QUEUE)
    assert told(journal) == {run.pk: reports.PARKED + 1}


def test_d7_a_second_abandonment_after_a_retry_is_reported(store: Store, journal: Journal) -> None:
    """The mark of the first one does not survive."""
    [run] = lost(store, jobs.precious.enqueue(label="A"))
    assert recovery.recover().counts["reported"] == 1
    control.retry([pk_of(run)])
    assert row(run).abandon_reported_at is None
    lost(store, run)
    assert recovery.recover().counts["reported"] == 1
    assert told(journal) == {pk_of(run): 2}
    assert (row(run).life, row(run).losses) == (2, 1)


def test_d9_a_hook_that_hangs_holds_up_nobody(store: Store, journal: Journal, gate: Path) -> None:
    slow = lost(store, jobs.slowly_reported.enqueue(label="S", gate=str(gate)))[0]
    good = lost(store, jobs.precious.enqueue(label="A"))[0]
    before = time.monotonic()
    report = recovery.recover(hooks=0.5)
    assert time.monotonic() - before < 3
    assert report.counts["abandoned"] == 2
    assert row(good).abandon_reported_at is not None
    assert row(slow).abandon_reported_at is None
    jobs.note.enqueue(label="B")
    drain()
    assert ["B"] in journal()
    gate.touch()
    wait_until(lambda: row(slow).abandon_reported_at)
    assert told(journal) == {pk_of(slow): 1, pk_of(good): 1}


# --- atomic hooks


def test_an_atomic_hook_commits_with_its_acknowledgement(store: Store, journal: Journal) -> None:
    [run] = abandoned(jobs.reported_in_one_commit)
    assert reports.deliver(QUEUE) == 1
    assert list(Written.objects.values_list("run", flat=True)) == [run.pk]
    assert row(run).abandon_reported_at is not None


def test_an_atomic_hook_that_raises_leaves_nothing(store: Store, journal: Journal) -> None:
    [run] = abandoned(jobs.half_reported)
    assert reports.deliver(QUEUE) == 0
    assert told(journal) == {run.pk: 1}
    assert not Written.objects.exists()
    assert row(run).abandon_reported_at is None


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
def test_an_atomic_hook_whose_report_was_made_by_another_leaves_nothing(
    store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took longer than its claim lasts, and another process made the report meanwhile."""
    [run] = abandoned(jobs.reported_in_one_commit)

    def acknowledged_by_another(**_: Any) -> None:
        def acknowledge() -> None:
            JobRun.objects.filter(pk=run.pk).update(abandon_reported_at=Now())
            connections.close_all()

        other = threading.Thread(target=acknowledge)
        other.start()
        other.join()

    run_abandoned.connect(acknowledged_by_another)
    try:
        assert reports.deliver(QUEUE) == 0
    finally:
        run_abandoned.disconnect(acknowledged_by_another)
    assert not Written.objects.exists()


def test_two_processes_make_each_report_once(store: Store, journal: Journal) -> None:
    runs = abandoned(jobs.precious, 20)
    assert sum(race(*[lambda: reports.deliver(QUEUE)] * 3)) == 20
    assert told(journal) == {run.pk: 1 for run in runs}
