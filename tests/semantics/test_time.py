"""Scheduled runs, expiry, new times; priority and its aging."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from groupjobs import control, store
from groupjobs.errors import Refused
from groupjobs.models import JobRun
from groupjobs.store.connect import stand_in
from project.embedded import EmbeddedValkey
from tests.conftest import StartWorker
from tests.core.rows import QUEUE, again, change
from tests.core.serving import drain, pk_of, serve, serving, statuses
from tests.jobsapp.jobs import note, waits
from tests.semantics.jobs import labelled
from tests.servers.waiting import wait_until
from tests.store.travel import Timed

Said = Callable[[], list[list[Any]]]
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def timed(transactional_db: None, valkey: EmbeddedValkey) -> Iterator[Timed]:
    """The real scripts on an open queue, whose TIME the test sets."""
    with valkey.client() as client:
        made = Timed(client, ttl=5)
        made.open(made.tick("", 0).epoch)
        stand_in(lambda queue: made)
        yield made
        stand_in(None)


def serve_all(timed: Timed) -> None:
    """Two executions: what was ready, and what became so."""
    serve()
    serve()


@pytest.mark.celery
def test_a_scheduled_run_starts_within_250_ms_of_its_time(start_worker: StartWorker, journal: Said) -> None:
    start_worker()
    note.enqueue("the worker serves")
    wait_until(journal, 30)
    due = timezone.now() + dt.timedelta(seconds=2)
    times = [due + dt.timedelta(seconds=0.35 * n) for n in range(5)]
    results = [note.using(run_after=time, group=f"g{n}").enqueue(str(n)) for n, time in enumerate(times)]
    wait_until(lambda: statuses(results) == ["SUCCEEDED"] * 5, 30)
    started = [again(pk_of(result)).started_at for result in results]
    late = [(at - time).total_seconds() for at, time in zip(started, times, strict=True) if at]
    assert len(late) == 5
    assert min(late) >= 0
    assert max(late) <= 0.25, late


def test_a_scheduled_run_joins_its_line_at_its_order_when_due(store: store.Store, journal: Said) -> None:
    """Due while its group is busy, it passes what was enqueued later with a greater order."""
    due = timezone.now() + dt.timedelta(seconds=0.3)
    early = note.using(run_after=due, order=-1).enqueue("scheduled")
    note.enqueue("first")
    drain(lambda: journal() == [["first"]])
    wait_until(lambda: timezone.now() > due)
    control.hold(QUEUE, "g")
    note.enqueue("second")
    control.resume(QUEUE, "g")
    drain()
    assert journal() == [["first"], ["scheduled"], ["second"]]
    assert again(pk_of(early)).started_at


def test_expiry_in_seconds_and_as_a_moment(store: store.Store, journal: Said) -> None:
    late = note.using(expires=3600).enqueue("late")
    change(again(pk_of(late)), expires_at="2001-01-01T00:00Z")
    past = note.using(expires=timezone.now() - HOUR, group="past").enqueue("past")
    good = note.using(expires=timezone.now() + HOUR).enqueue("good")
    drain()
    assert statuses([late, past, good]) == ["CANCELLED", "CANCELLED", "SUCCEEDED"]
    assert [again(pk_of(result)).reason for result in (late, past)] == ["expired"] * 2
    assert journal() == [["good"]]


def test_a_run_that_has_begun_does_not_expire(store: store.Store, journal: Said, gate: Path) -> None:
    result = waits.using(expires=3600).enqueue("a", str(gate))
    with serving():
        wait_until(journal)
        JobRun.objects.update(expires_at="2001-01-01T00:00Z")
        gate.touch()
        wait_until(lambda: statuses([result]) == ["SUCCEEDED"])


def test_a_run_gets_another_time(store: store.Store, journal: Said) -> None:
    result, other = note.enqueue("a"), note.enqueue("b")
    later = timezone.now() + HOUR
    assert control.reschedule([pk_of(result)], later).changed == [pk_of(result)]
    drain(lambda: journal() == [["b"]])
    assert statuses([result, other]) == ["READY", "SUCCEEDED"]
    assert again(pk_of(result)).run_after == later
    assert control.reschedule([pk_of(result)], None).changed
    drain()
    assert journal() == [["b"], ["a"]]
    assert str(control.reschedule([pk_of(result)], None)) == "0 changed, 1 skipped: is SUCCEEDED"


@pytest.mark.parametrize("moment", [dt.datetime(2030, 1, 1), "tomorrow", 5])
def test_another_time_that_is_none_is_refused(store: store.Store, moment: Any) -> None:
    result = note.enqueue("a")
    with pytest.raises(Refused, match="run_after must be"):
        control.reschedule([pk_of(result)], moment)
    assert again(pk_of(result)).run_after is None


def test_a_run_that_is_reserved_while_it_gets_another_time_is_not_asked_to_end(
    store: store.Store, journal: Said, gate: Path
) -> None:
    result = waits.enqueue("a", str(gate))
    with serving():
        wait_until(journal)
        assert control.reschedule([pk_of(result)], timezone.now() + HOUR).skipped
        gate.touch()
        wait_until(lambda: statuses([result]) == ["SUCCEEDED"])


# --- priority


def test_the_head_s_priority_counts(timed: Timed, journal: Said) -> None:
    labelled.using(group="low", priority=-10).enqueue("low")
    labelled.using(group="mid").enqueue("mid")
    labelled.using(group="high", priority=10).enqueue("high")
    labelled.using(group="mixed", priority=20).enqueue("a head")
    labelled.using(group="mixed", priority=-20).enqueue("behind it")
    serve_all(timed)
    assert [label for label, *_ in journal()] == ["a head", "high", "mid", "low", "behind it"]


def test_an_urgent_run_lifts_the_group_in_which_it_waits(timed: Timed, journal: Said) -> None:
    labelled.using(group="mid", priority=5).enqueue("mid")
    labelled.using(group="mixed").enqueue("a head")
    labelled.using(group="mixed", priority=9).enqueue("urgent")
    serve_all(timed)
    assert [label for label, *_ in journal()] == ["a head", "urgent", "mid"]


def test_what_waits_long_enough_goes_first_whatever_its_priority(timed: Timed, journal: Said) -> None:
    """A hundred of priority are a hundred seconds of waiting."""
    labelled.using(group="low", priority=-100).enqueue("low")
    timed.pass_time(199)
    labelled.using(group="sooner", priority=100).enqueue("sooner")
    timed.pass_time(2)
    labelled.using(group="later", priority=100).enqueue("later")
    serve_all(timed)
    assert [label for label, *_ in journal()] == ["sooner", "low", "later"]
