"""Places in a line at the edges of what an order may be; keys of runs whose worker died; clocks that are wrong."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from groupjobs import control, recovery
from groupjobs.errors import Refused
from groupjobs.store import Store
from groupjobs.store.keys import line_name
from tests.core.rows import QUEUE, again, change, running
from tests.core.serving import drain, pk_of, statuses, traces
from tests.jobsapp.jobs import flaky, note
from tests.semantics.jobs import once
from tests.servers.waiting import wait_until

Said = Callable[[], list[list[Any]]]

FAR = 2**53


def test_c3_orders_at_the_edges_keep_their_place_through_retry_and_recovery(store: Store, journal: Said) -> None:
    orders = [FAR, FAR - 1, 0, 1 - FAR, -FAR]
    control.hold(QUEUE, "g")
    runs = [flaky.using(group="g", order=order).enqueue(str(order), failures=1) for order in orders]
    lost = again(pk_of(runs[-1]))
    change(lost, status="RUNNING", fence=5, alone=True, worker="dead:1:x", consumer="dead")
    store.withdraw([(lost.pk, line_name("g", lost.pk), 1)])
    recovery.recover()
    control.resume(QUEUE, "g")
    drain()
    assert [int(label) for (label,) in journal()] == [order for order in sorted(orders) for _ in range(_tries(order))]


def _tries(order: int) -> int:
    """Its loss counts as an attempt, so the lost one does not fail any more."""
    return 1 if order == -FAR else 2


@pytest.mark.parametrize("order", [FAR + 1, -FAR - 1, 0.5, True, "1"])
def test_c3_other_orders_are_refused(order: Any) -> None:
    with pytest.raises(Refused, match="order must be a whole number"):
        note.using(order=order)


@pytest.mark.parametrize("most", [0, 2])
def test_h1_a_dead_worker_leaves_no_key_behind(store: Store, journal: Said, most: int) -> None:
    """Abandoned or tried again: either way the key is free when the run has ended."""
    run = running(alone=True, max_losses=most, job=once.job_name, dedup_key="k", args=["k", "lost"])
    assert once.enqueue("k", "new").id == str(run.pk), "until it is found dead it counts as live"
    recovery.recover()
    drain()
    assert again(run).status == ("SUCCEEDED" if most else "ABANDONED")
    assert again(run).dedup_key is None
    assert once.enqueue("k", "newer").id != str(run.pk)


@pytest.mark.parametrize("skew", [60, -60])
def test_k1_a_clock_that_is_a_minute_off_has_no_effect(
    store: Store, journal: Said, monkeypatch: pytest.MonkeyPatch, skew: int
) -> None:
    """Neither of the process that enqueues nor of the one that serves."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + skew)
    due = timezone.now() + dt.timedelta(seconds=0.5)
    later, at_once = note.using(run_after=due, group="later").enqueue("later"), note.enqueue("now")
    short = note.using(expires=30).enqueue("short")
    drain(lambda: statuses([at_once, short]) == ["SUCCEEDED"] * 2)
    wait_until(lambda: real() > due.timestamp())
    drain()
    rows = [again(pk_of(result)) for result in (later, at_once)]
    assert all(
        row.enqueued_at <= row.started_at <= row.finished_at for row in rows if row.started_at and row.finished_at
    )
    started = rows[0].started_at
    assert started
    assert dt.timedelta(0) <= started - due < dt.timedelta(seconds=20)


NASTY = ["a:b|c,d;e{f}%s%%\\", "{default}", "0", "ünï©ødé 🛩\u200f\u2028", " \t\n", "line:g", "x" * 255]


def test_j2_any_text_is_a_group_of_its_own_and_comes_back(store: Store, journal: Said) -> None:
    told = [(group, label) for group in NASTY for label in NASTY] + [("large", "y" * 2**20)]
    results = [note.using(group=group).enqueue(label) for group, label in told]
    drain()
    rows = [again(pk_of(result)) for result in results]
    assert {row.status for row in rows} == {"SUCCEEDED"}
    assert [(row.group, row.result) for row in rows] == told
    assert traces(store) == []
    with pytest.raises(Refused, match="group has 500 characters"):
        note.using(group="x" * 500)
    for wrong in ("a\0b", "\ud800"):
        with pytest.raises(Refused, match="label"):
            note.enqueue(wrong)
