from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.db.models.functions import Now

import groupjobs
from groupjobs import control, ledger
from groupjobs.models import JobProgress, JobRun
from groupjobs.store import Store
from tests.core.rows import change, new
from tests.core.serving import drain, pk_of, serving, statuses
from tests.jobsapp.jobs import counts
from tests.semantics.jobs import tells_and_waits, tracks
from tests.servers.waiting import wait_until

Said = Callable[[], list[list[Any]]]


def test_progress_shows_inside_an_atomic_handler(store: Store, journal: Said, gate: Path) -> None:
    """On a connection of its own; SQLite has one writer, which is the handler: there it shows at its commit."""
    result = tells_and_waits.enqueue(str(gate))
    with serving():
        wait_until(journal)
        if connection.vendor != "sqlite":
            wait_until(lambda: JobProgress.objects.get(run_id=pk_of(result)).done == 5)
            assert statuses([result]) == ["RUNNING"]
        gate.touch()
        wait_until(lambda: statuses([result]) == ["SUCCEEDED"])
    found = groupjobs.progress([result.id])[pk_of(result)]
    assert (found.done, found.total, found.message, found.phase) == (5, 10, "step 5", "walking")
    assert found.percent == 50.0


def test_writes_are_throttled(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    real = ledger.write_progress

    def noted(said: Any) -> None:
        written.append(said)
        real(said)

    monkeypatch.setattr(ledger, "write_progress", noted)
    result = counts.enqueue(20_000)
    drain()
    assert JobProgress.objects.get(run_id=pk_of(result)).done == 20_000
    assert 1 <= len(written) <= 40


def test_rate_and_time_left(transactional_db: None) -> None:
    [run] = new()
    change(run, status="RUNNING", last_attempted_at=ledger.later(-10))
    JobProgress.objects.filter(run=run).update(done=20, total=100, updated_at=Now())
    found = groupjobs.progress([run.pk])[run.pk]
    assert found.rate == pytest.approx(2.0, rel=0.05)
    assert found.eta is not None
    assert found.eta.total_seconds() == pytest.approx(40.0, rel=0.05)
    assert (found.run, found.status, found.percent) == (run.pk, "RUNNING", 20.0)


def test_what_is_not_known_is_none(transactional_db: None) -> None:
    [run] = new()
    found = groupjobs.progress([run.pk, 10**9])
    assert list(found) == [run.pk]
    assert (found[run.pk].rate, found[run.pk].eta, found[run.pk].percent) == (None, None, None)


def test_it_can_be_read_in_an_asgi_view(transactional_db: None) -> None:
    runs = new(3)

    async def view() -> dict[int, Any]:
        one, other = await asyncio.gather(
            groupjobs.aprogress([runs[0].pk]), groupjobs.aprogress(str(run.pk) for run in runs[1:])
        )
        return {**one, **other}

    found = async_to_sync(view)()
    assert sorted(found) == [run.pk for run in runs]


def test_one_query_for_many(transactional_db: None, django_assert_num_queries: Any) -> None:
    runs = new(30)
    with django_assert_num_queries(1):
        assert len(groupjobs.progress(run.pk for run in runs)) == 30


def test_track_ends_a_cancelled_run_between_two_steps(store: Store, journal: Said, gate: Path) -> None:
    result = tracks.enqueue(str(gate))
    with serving():
        wait_until(journal)
        control.cancel([pk_of(result)])
        wait_until(lambda: JobRun.objects.get(pk=result.id).cancel_requested_at)
        gate.touch()
        wait_until(lambda: statuses([result]) == ["CANCELLED"])


def test_an_eta_is_a_duration(transactional_db: None) -> None:
    [run] = new()
    change(run, status="SUCCEEDED", last_attempted_at=ledger.later(-4), finished_at=Now())
    JobProgress.objects.filter(run=run).update(done=8, total=8, updated_at=Now())
    found = groupjobs.progress([run.pk])[run.pk]
    assert found.eta == dt.timedelta(0)
