"""The quick sweep publishes what Redis could not be told of."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from groupjobs import ledger, recovery
from groupjobs.models import JobRun
from groupjobs.moves import publishing
from groupjobs.store import Store
from project.embedded import EmbeddedValkey
from tests.core.rows import QUEUE, again
from tests.core.serving import drain, known
from tests.jobsapp import jobs

pytestmark = pytest.mark.django_db(transaction=True)
Journal = Callable[[], list[list[Any]]]


def test_the_quick_sweep_publishes_thousands_in_order(store: Store, journal: Journal) -> None:
    lines = [("g", "[]", json.dumps({"label": str(number)}), None) for number in range(2100)]
    results = ledger.insert(ledger.Batch(QUEUE, jobs.note.job_name, lines))
    JobRun.objects.update(unpublished=True)
    report = recovery.sweep(QUEUE, "quick")
    assert report is not None
    assert report.counts["republished"] == 2100
    assert len(known(store, results)) == 2100
    drain()
    assert journal() == [[str(number)] for number in range(2100)]


def test_one_quick_sweep_at_a_time(store: Store) -> None:
    assert recovery.sweep(QUEUE, "quick") is not None
    assert recovery.sweep(QUEUE, "quick") is None
    assert recovery.sweep(QUEUE, "full") is not None
    assert recovery.sweep(QUEUE, "full") is None


def test_the_quick_sweep_leaves_flags_when_redis_is_still_down(store: Store, valkey: EmbeddedValkey) -> None:
    result = jobs.note.enqueue(label="a")
    JobRun.objects.update(unpublished=True)
    assert recovery.sweep(QUEUE, "quick") is not None
    assert not again(int(result.id)).unpublished
    JobRun.objects.update(unpublished=True)
    store.client.delete(*store.client.keys(f"{store.base}:turn:*"))
    publishing.outage.failed(OSError("down"), "test")
    assert recovery.sweep(QUEUE, "quick") is not None
    assert again(int(result.id)).unpublished


def test_a_run_whose_publication_was_lost_is_not_overtaken(store: Store, journal: Journal) -> None:
    """A waits unpublished while B of the same group, enqueued later, is published."""
    publishing.outage.failed(OSError("down"), "the breaker sends nothing")
    jobs.note.enqueue(label="a")
    publishing.outage.ended()
    first = JobRun.objects.get()
    second = jobs.note.enqueue(label="b")
    assert known(store, [first, second]) == {int(second.id)}
    drain()
    assert journal() == [["a"], ["b"]]
