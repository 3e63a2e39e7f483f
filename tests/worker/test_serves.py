"""A real worker of each pool serves many groups: one run of a group at a time, in order, each once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from groupjobs.lifecycle import LIVE
from groupjobs.models import JobRun
from tests.conftest import StartWorker
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.celery

GROUPS = 40
EACH = 8
FAILING = 3  # this run of every fourth group fails once


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_b4_many_groups_are_served_in_order_and_one_at_a_time(
    start_worker: StartWorker, journal: Callable[[], list[list[Any]]], pool: str
) -> None:
    start_worker(pool=pool, concurrency=1 if pool == "solo" else 2)
    jobs.one_of_many.enqueue_many(
        [
            {"group": f"g{group}", "number": number, "fails": number == FAILING and group % 4 == 0}
            for number in range(EACH)
            for group in range(GROUPS)
        ]
    )
    wait_until(lambda: not JobRun.objects.filter(status__in=LIVE).exists(), 60, "every run has ended")
    assert Counter(JobRun.objects.values_list("status", flat=True)) == {"SUCCEEDED": GROUPS * EACH}
    said = defaultdict(list)
    for what, group, number in journal():
        said[group].append((what, number))
    assert dict(said) == {f"g{group}": expected(group) for group in range(GROUPS)}


def expected(group: int) -> list[tuple[str, int]]:
    """Begin and end in turn, number by number; the one that fails keeps its place: A, A, B, C."""
    words = []
    for number in range(EACH):
        if number == FAILING and group % 4 == 0:
            words += [("begin", number), ("failed", number)]
        words += [("begin", number), ("end", number)]
    return words
