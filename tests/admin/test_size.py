"""A hundred thousand runs cost a page what a thousand cost: bounded reads, and no count of the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from groupjobs.models import JobRun
from groupjobs.store import Store

RUNS = "/admin/groupjobs/jobrun/"
PAGES = (
    RUNS, f"{RUNS}?status=READY", f"{RUNS}?status=FAILED", f"{RUNS}?p=o500", f"{RUNS}?trouble=unreported",
    f"{RUNS}?finished=hour", f"{RUNS}?enqueued=hour", "/admin/groupjobs/jobgroup/",
    "/admin/groupjobs/jobgroup/?order=name", "/admin/groupjobs/jobgroup/queues/",
)  # fmt: skip
MANY = 100_000


def fill(number: int) -> None:
    rows = [
        JobRun(
            queue="default",
            group=f"g{n % 1000}",
            job="j",
            status="READY" if n % 2 else "SUCCEEDED",
            finished_at=None if n % 2 else "2026-01-01T00:00:00+00:00",
        )
        for n in range(number)
    ]
    JobRun.objects.bulk_create(rows, batch_size=5_000)
    with connection.cursor() as cursor:
        cursor.execute("analyze table groupjobs_jobrun" if connection.vendor == "mysql" else "analyze")


def cost(read: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        began = time.perf_counter()
        read()
        times.append(time.perf_counter() - began)
    return min(times)


@pytest.mark.slow
def test_pages_do_not_grow_with_the_table(boss: Client, store: Store) -> None:
    fill(1_000)
    small = {page: cost(partial(boss.get, page)) for page in PAGES}
    fill(MANY - 1_000)
    for page in PAGES:
        with CaptureQueriesContext(connection) as queries:
            answer = boss.get(page)
        assert answer.status_code == 200, page
        assert [q["sql"] for q in queries if "COUNT(" in q["sql"].upper()] == [], page
        large = cost(partial(boss.get, page))
        assert large < 6 * small[page] + 0.25, (page, small[page], large)
