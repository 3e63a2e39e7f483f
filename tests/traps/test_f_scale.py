"""Scale that rows have a part in."""

from __future__ import annotations

import pytest

from groupjobs.models import JobProgress, JobRun
from groupjobs.store import Store
from tests.jobsapp import jobs

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_f5_enqueue_many_of_fifty_thousand(store: Store) -> None:
    results = jobs.note.enqueue_many([{"label": "x", "group": f"g{n % 50}"} for n in range(50_000)])
    assert len({result.id for result in results}) == 50_000
    assert JobRun.objects.filter(status="READY", unpublished=False).count() == 50_000
    assert JobProgress.objects.count() == 50_000
    groups = store.snapshot([(1, f"g{n}") for n in range(50)]).groups
    assert {state.waiting for state in groups.values()} == {1_000}
