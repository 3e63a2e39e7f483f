"""Reports of abandonments: at least once, for abandonment only, and no hook delays another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from groupjobs import recovery, registry, reports
from groupjobs.models import JobRun
from groupjobs.signals import run_abandoned
from groupjobs.store import Store
from tests.core.ghosts import abandoned, begin, lost, reserve, row, someone
from tests.core.rows import QUEUE, change
from tests.core.serving import drain, pk_of, serve
from tests.core.told import told
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
Journal = Callable[[], list[list[Any]]]


@pytest.fixture
def heard() -> Iterator[list[tuple[int, str]]]:
    """What the signal said."""
    said: list[tuple[int, str]] = []

    def receiver(run: JobRun, reason: str, **_: Any) -> None:
        said.append((run.pk, reason))

    run_abandoned.connect(receiver)
    yield said
    run_abandoned.disconnect(receiver)


def test_a_hook_and_the_signal_are_told_once(store: Store, journal: Journal, heard: list[Any]) -> None:
    [run] = lost(store, jobs.precious.enqueue(label="A"))
    assert recovery.recover().counts["reported"] == 1
    assert journal() == [["report", pk_of(run), "too_many_losses"]]
    assert heard == [(pk_of(run), "too_many_losses")]
    assert row(run).abandon_reported_at is not None
    for _ in range(2):
        assert recovery.recover().counts["reported"] == 0
    assert len(journal()) == 1


def test_d8_a_consumer_that_abandons_reports_at_once(store: Store, journal: Journal, heard: list[Any]) -> None:
    """A consumer finds the ghost of a run that has no loss left."""
    run = jobs.precious.enqueue(label="A")
    consumer = someone()
    begin(consumer, reserve(store, consumer, 1))
    store.reap(worker=consumer.worker)
    serve()
    assert row(run).status == "ABANDONED"
    wait_until(lambda: row(run).abandon_reported_at, timeout=5)
    assert told(journal) == {pk_of(run): 1}
    assert heard == [(pk_of(run), "too_many_losses")]


def test_unknown_jobs_are_reported_by_the_signal(store: Store, heard: list[Any]) -> None:
    run = jobs.note.enqueue(label="A")
    change(row(run), job="tests.no.such.job", enqueued_at=Now() - timedelta(hours=2))
    serve()
    wait_until(lambda: heard, timeout=5)
    assert heard == [(pk_of(run), "unknown_job")]


def test_d10_a_handler_that_ran_and_raised_is_no_abandonment(store: Store, journal: Journal, heard: list[Any]) -> None:
    run = jobs.fails_and_has_a_hook.enqueue(label="A")
    drain()
    recovery.recover()
    assert row(run).status == "FAILED"
    assert journal() == [["A"]]
    assert heard == []


def test_d8_a_process_that_lacks_the_job_leaves_the_report_to_one_that_has_it(
    store: Store, journal: Journal, heard: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    [run] = abandoned(jobs.precious)
    with monkeypatch.context() as patch:
        patch.setattr(registry, "resolve", lambda name: None)
        assert reports.deliver(QUEUE) == 0
    assert (row(run).abandon_reported_at, row(run).report_attempts, heard) == (None, 0, [])
    assert reports.deliver(QUEUE) == 1
    assert told(journal) == {run.pk: 1}


def test_reports_that_nobody_here_can_make_hide_no_other(store: Store, journal: Journal) -> None:
    orphans = abandoned(jobs.note, 120, group="o")
    JobRun.objects.filter(pk__in=[run.pk for run in orphans]).update(job="tests.no.such.job")
    [run] = abandoned(jobs.precious)
    assert reports.deliver(QUEUE) == 1
    assert told(journal) == {run.pk: 1}


def test_many_quick_reports_are_made_in_one_go(store: Store, journal: Journal) -> None:
    runs = abandoned(jobs.precious, 150)
    assert reports.deliver(QUEUE, wait=20) == 150
    assert told(journal) == {run.pk: 1 for run in runs}
