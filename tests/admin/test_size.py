"""Of 128,000 runs a page costs what it costs of a thousand: bounded reads, and no count of the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

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
    JobRun.objects.bulk_create(rows, batch_size=500)
    analyze()


def double() -> None:
    names = [connection.ops.quote_name(field.attname) for field in JobRun._meta.fields if not field.primary_key]
    columns = ", ".join(names)
    with connection.cursor() as cursor:
        cursor.execute(f"insert into groupjobs_jobrun ({columns}) select {columns} from groupjobs_jobrun")


def analyze() -> None:
    """MariaDB keeps its statistics by itself, and would commit here."""
    if connection.vendor != "mysql":
        with connection.cursor() as cursor:
            cursor.execute("analyze")


def cost(read: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        began = time.perf_counter()
        read()
        times.append(time.perf_counter() - began)
    return min(times)


def test_pages_do_not_grow_with_the_table(boss: Client, store: Store) -> None:
    fill(1_000)
    small = {page: cost(partial(boss.get, page)) for page in PAGES}
    for _ in range(7):
        double()
    analyze()
    for page in PAGES:
        with CaptureQueriesContext(connection) as queries:
            answer = boss.get(page)
        assert answer.status_code == 200, page
        assert [q["sql"] for q in queries if "COUNT(" in q["sql"].upper()] == [], page
        large = cost(partial(boss.get, page))
        assert large < 6 * small[page] + 0.25, (page, small[page], large)
