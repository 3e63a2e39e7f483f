"""The page of queues and workers, and its charts."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from groupjobs.admin.charts import HEIGHT, WIDTH, bars, polylines
from groupjobs.explain import traffic
from groupjobs.models import JobRun
from groupjobs.store import Store
from project.embedded import EmbeddedValkey
from tests.admin.conftest import MakeRun

QUEUES = "/admin/groupjobs/jobgroup/queues/"

Reserve = Callable[[JobRun], int]


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    traffic.forget()
    yield
    traffic.forget()


def page(client: Client) -> str:
    answer = client.get(QUEUES)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", html.unescape(answer.content.decode()))


def ended(minutes_ago: float, wait: float = 1.0, **columns: Any) -> JobRun:
    finished = timezone.now().replace(second=30) - timedelta(minutes=minutes_ago)
    started = finished - timedelta(seconds=1)
    values = {"queue": "default", "job": "j", "status": "SUCCEEDED", **columns}
    return JobRun(finished_at=finished, started_at=started, enqueued_at=started - timedelta(seconds=wait), **values)


def test_counts_workers_and_current_runs(boss: Client, make_run: MakeRun, store: Store, reserve: Reserve) -> None:
    run = make_run(group="aircraft:N1")
    reserve(run)
    for _ in range(3):
        make_run()
    text = page(boss)
    assert "<strong>3</strong> runs waiting" in text
    assert "<strong>1</strong> runs running" in text
    assert run.worker in text
    assert re.search(r"pid 1, 1 lease, seen [\d.]+ s ago", text)
    assert f"#{run.pk}</a> aircraft:N1" in text
    assert "Nothing ended in the last hour." in text


def test_a_silent_worker_is_marked(boss: Client, make_run: MakeRun, store: Store, reserve: Reserve) -> None:
    run = make_run()
    reserve(run)
    store.client.zincrby(f"{store.base}:workers", -60_000, run.worker)
    text = page(boss)
    assert "silent</span>" in text
    assert "no worker runs" in text


def test_e4_a_worker_that_beats_and_serves_nobody_shows_how_long(
    boss: Client, make_run: MakeRun, store: Store, reserve: Reserve
) -> None:
    run = make_run()
    reserve(run)
    assert "10 min ago" not in page(boss)
    store.client.hincrby(f"{store.base}:stats", f"served {run.worker}", -600_000)
    text = page(boss)
    assert "10 min ago" in text
    assert "silent</span>" not in text


def test_redis_down(boss: Client, make_run: MakeRun, valkey: EmbeddedValkey) -> None:
    make_run()
    valkey.kill()
    text = page(boss)
    assert "Redis does not answer" in text
    assert "<strong>1</strong> runs waiting" in text


def test_the_last_hour_in_minutes(boss: Client, store: Store) -> None:
    JobRun.objects.bulk_create([ended(5, wait) for wait in (1, 2, 3)])
    JobRun.objects.bulk_create([ended(5, 4, status="FAILED"), ended(40), ended(62), ended(0)])
    hour = traffic.last_hour()["default"]
    assert len(hour) == 60
    assert (hour[-5].succeeded, hour[-5].others) == (3, 1)
    assert hour[-5].middle == pytest.approx(2.5)
    assert sum(minute.succeeded + minute.others for minute in hour) == 5
    text = page(boss)
    assert "ended in the last hour: 5, of them without success: 1; at most 4 a minute" in text
    assert text.count('role="img"') == 2


def test_busy_minutes_are_estimated_from_a_sample(store: Store) -> None:
    start = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=3)
    JobRun.objects.bulk_create(
        JobRun(queue="default", job="j", status="SUCCEEDED", started_at=start, enqueued_at=start,
               finished_at=start + timedelta(seconds=n * 60 / 2000))
        for n in range(2000)
    )  # fmt: skip
    with CaptureQueriesContext(connection) as queries:
        minute = traffic.last_hour()["default"][-3]
    assert minute.succeeded == pytest.approx(2000, rel=0.02)
    assert all("LIMIT" in query["sql"] for query in queries)


def test_past_minutes_are_read_once(store: Store) -> None:
    JobRun.objects.bulk_create([ended(5)])
    traffic.last_hour()
    with CaptureQueriesContext(connection) as queries:
        assert traffic.last_hour()["default"][-5].succeeded == 1
    assert len(queries) <= 4


def test_bars_and_lines_fill_the_chart() -> None:
    first, second = bars([(2, 0), (3, 1)])
    assert (first.height, first.top_height) == (HEIGHT / 2, 0)
    assert (second.height, second.top_height, second.top_y) == (HEIGHT * 0.75, HEIGHT * 0.25, 0)
    assert second.x + second.width <= WIDTH
    assert bars([]) == []
    assert polylines([1, 2, None, 2], 2) == ["60.0,48.0 180.0,0.0", "380.0,0.0 460.0,0.0"]
    assert polylines([None], 0) == []
