"""Of a million runs a page takes about what it takes of ten thousand."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import Page, expect

from groupjobs.explain import traffic
from groupjobs.models import JobRun
from groupjobs.store import Store
from tests.admin.conftest import MakeRun
from tests.browser.conftest import OpenPage

RUNS = "/admin/groupjobs/jobrun/"
GROUPS = "/admin/groupjobs/jobgroup/"
FEW = 10_000
MANY = int(os.environ.get("GROUPJOBS_ROWS") or 1_000_000)
PAGES = (
    RUNS, f"{RUNS}?status=READY", f"{RUNS}?status=FAILED", f"{RUNS}?p=o5000", f"{RUNS}?q=5000", f"{RUNS}?group=g77",
    f"{RUNS}?finished=hour", f"{RUNS}?enqueued=hour", f"{RUNS}?trouble=ghost", GROUPS, f"{GROUPS}?order=name",
    f"{GROUPS}group/?queue=default&group=g77", f"{GROUPS}queues/",
)  # fmt: skip
# Every hundredth waits, one in a thousand has failed, the others have succeeded: ten a second, until now.
VARIED = {
    "group": "'g' || (n %% 5000)",
    "status": "case when n %% 100 = 0 then 'READY' when n %% 1000 = 1 then 'FAILED' else 'SUCCEEDED' end",
    "finished_at": "case when n %% 100 = 0 then null else {now} end",
    "enqueued_at": "{now}",
    "started_at": "{now}",
}
NUMBERS = {
    "postgresql": ("select n from generate_series(%s, %s) n", "now() - make_interval(secs => ({most} - n) / 10.0)"),
    "sqlite": (
        "with recursive s(n) as (select %s union all select n + 1 from s where n < %s) select n from s",
        "datetime('now', ((n - {most}) / 10.0) || ' seconds')",
    ),
}


def fill(like: JobRun, first: int, last: int) -> None:
    """Rows like this one with the numbers from first to last."""
    numbers, now = NUMBERS[connection.vendor]
    varied = {name: text.format(now=now.format(most=last)) for name, text in VARIED.items()}
    names = [field.attname for field in JobRun._meta.fields if not field.primary_key]
    quoted = [connection.ops.quote_name(name) for name in names]
    values = [varied.get(name, f"r.{quote}") for name, quote in zip(names, quoted, strict=True)]
    run = JobRun._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"insert into {run} ({', '.join(quoted)}) select {', '.join(values)} from {run} r, ({numbers}) s "
            "where r.id = %s order by n",
            [first, last, like.pk],
        )
        cursor.execute("analyze")


def cost(page: Page, address: str) -> float:
    """Seconds from the request to the last byte, at best."""
    times = []
    for _ in range(3):
        traffic.forget()
        began = time.perf_counter()
        answer: Any = page.request.get(address)
        times.append(time.perf_counter() - began)
        assert answer.status == 200, address
    return min(times)


def whole_reads(client: Client, address: str) -> list[str]:
    """Queries of a page for which PostgreSQL would read the whole table of runs."""
    if connection.vendor != "postgresql":
        return []
    traffic.forget()
    with CaptureQueriesContext(connection) as queries:
        client.get(address)
    found = []
    for sql in {query["sql"] for query in queries if query["sql"].startswith("SELECT")}:
        with connection.cursor() as cursor:
            cursor.execute("explain " + sql.replace("%", "%%"), [])
            plan = "\n".join(line for (line,) in cursor.fetchall())
        if f"Seq Scan on {JobRun._meta.db_table}" in plan:
            found.append(f"{sql}\n{plan}")
    return found


@pytest.mark.timeout(600)
@pytest.mark.skipif(connection.vendor not in NUMBERS, reason="makes its rows with SQL of PostgreSQL or SQLite")
def test_a_million_runs(boss: Client, open_page: OpenPage, make_run: MakeRun, store: Store) -> None:
    like = make_run("SUCCEEDED")
    page = open_page(boss)
    fill(like, 2, FEW)
    few = {address: cost(page, address) for address in PAGES}
    fill(like, FEW + 1, MANY)
    for address in PAGES:
        many = cost(page, address)
        print(f"{address}: {1000 * few[address]:.0f} ms of {FEW:,}, {1000 * many:.0f} ms of {MANY:,}")
        assert many < 6 * few[address] + 0.25, (address, few[address], many)
        assert whole_reads(boss, address) == [], address
    page.goto(f"{RUNS}drift/")  # looks for as long as it may, and says how far it came
    expect(page.get_by_text("live runs examined")).to_be_visible()
    assert whole_reads(boss, f"{RUNS}drift/") == []
    page.goto(RUNS)
    page.get_by_role("link", name="Older").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(50)
    page.goto(f"{GROUPS}queues/")
    expect(page.get_by_role("img")).to_have_count(2)
