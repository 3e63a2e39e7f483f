"""The metrics: numbers of the fleet, with labels that are bounded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from groupjobs.metrics import counting
from groupjobs.metrics.exposition import GroupJobsCollector, exposition
from groupjobs.models import JobRun
from groupjobs.moves import publish
from groupjobs.store import Store, store_for
from project.embedded import EmbeddedValkey
from tests.conftest import StartWorker
from tests.core.rows import change, new
from tests.core.serving import drain
from tests.jobsapp.jobs import fails, flaky, noop
from tests.servers.environment import ROOT
from tests.servers.waiting import wait_until
from tests.worker.conftest import QUICK

Samples = dict[tuple[str, ...], float]


@pytest.fixture
def counted(store: Store) -> Iterator[Store]:
    """What becomes of runs is counted."""
    counting._tallies.clear()
    counting.connect()
    yield store
    counting.disconnect()
    counting._tallies.clear()


def scraped() -> Samples:
    """Values by name and the values of the labels in alphabetical order."""
    families = text_string_to_metric_families(exposition().decode())
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in families
        for sample in family.samples
    }


def test_what_became_of_runs_is_counted_by_job(counted: Store) -> None:
    noop.enqueue_many([((), {})] * 5)
    flaky.enqueue("a", failures=1)
    fails.enqueue("b")
    drain()
    counting.flush()
    found = scraped()
    name = "groupjobs_runs_total"
    assert found[name, "tests.jobsapp.jobs.noop", "default", "succeeded"] == 5
    assert found[name, "tests.jobsapp.jobs.flaky", "default", "retried"] == 1
    assert found[name, "tests.jobsapp.jobs.flaky", "default", "succeeded"] == 1
    assert found[name, "tests.jobsapp.jobs.fails", "default", "failed"] == 1
    assert found["groupjobs_run_seconds_total", "tests.jobsapp.jobs.noop", "default"] >= 0
    assert found["groupjobs_leases_total", "reserved", "default"] >= 8
    assert found["groupjobs_leases_total", "done", "default"] >= 7


def test_counts_are_those_of_the_fleet_and_not_of_one_process(counted: Store) -> None:
    """Another process has counted; this one, which is scraped, has not run anything."""
    counted.count({"run succeeded shop.jobs.send": 3, "ms shop.jobs.send": 1500})
    counted.count({"run succeeded shop.jobs.send": 4})
    found = scraped()
    assert found["groupjobs_runs_total", "shop.jobs.send", "default", "succeeded"] == 7
    assert found["groupjobs_run_seconds_total", "shop.jobs.send", "default"] == 1.5


def test_counts_are_told_by_themselves_and_survive_an_outage(counted: Store, valkey: EmbeddedValkey) -> None:
    def told() -> int:
        return store_for("default").overview().stats.get("run succeeded j", 0)

    tally = counting._tally()
    tally.add("default", "succeeded", "j", 0.5)
    wait_until(lambda: told() == 1, 20)
    valkey.kill()
    tally.add("default", "succeeded", "j", 0.5)
    tally.flush()
    valkey.start()
    wait_until(lambda: told() == 2, 20)


def test_jobs_beyond_the_bound_are_counted_together(counted: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_JOBS", 2)
    tally = counting.Tally()
    for number in range(5):
        tally.add("default", "succeeded", f"j{number}", None)
    tally.flush()
    counts = {name: number for name, number in counted.overview().stats.items() if name.startswith("run ")}
    assert counts == {"run succeeded j0": 1, "run succeeded j1": 1, "run succeeded other": 3}


def test_gauges_are_read_at_the_scrape(store: Store) -> None:
    publish(new(3))
    first, second, third = new(3, group="other")
    change(first, status="ABANDONED", report_attempts=10)
    change(second, status="ABANDONED")
    change(third, unpublished=True)
    found = scraped()
    expected = {
        ("groupjobs_up", "default"): 1,
        ("groupjobs_paused", "default"): 0,
        ("groupjobs_ready_groups", "default"): 1,
        ("groupjobs_workers", "default"): 0,
        ("groupjobs_live_runs", "default", "READY"): 4,
        ("groupjobs_live_runs", "default", "RUNNING"): 0,
        ("groupjobs_unpublished_runs", "default"): 1,
        ("groupjobs_unreported_abandonments", "default"): 2,
        ("groupjobs_parked_abandonments", "default"): 1,
    }
    assert {key: found.get(key) for key in expected} == expected


def test_a_scrape_asks_the_same_whatever_there_is(store: Store) -> None:
    def cost() -> tuple[int, int]:
        before = store.client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0)
        with CaptureQueriesContext(connection) as queries:
            exposition()
        return len(queries), store.client.info("commandstats")["cmdstat_evalsha"]["calls"] - before

    exposition()
    few = cost()
    JobRun.objects.bulk_create([JobRun(queue="default", group=f"g{n}", job="j") for n in range(2000)])
    assert cost() == few
    assert "g1999" not in exposition().decode(), "a group is no label"


def test_redis_that_is_down_is_a_number(store: Store, valkey: EmbeddedValkey) -> None:
    publish(new(3))
    valkey.kill()
    found = scraped()
    assert found["groupjobs_up", "default"] == 0
    assert found["groupjobs_live_runs", "default", "READY"] == 3


def test_the_page_and_any_registry(store: Store) -> None:
    with override_settings(ROOT_URLCONF="tests.observing.test_health"):
        answer = Client().get("/jobs/metrics/")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    assert b'groupjobs_up{queue="default"} 1.0' in answer.content
    registry = CollectorRegistry()
    registry.register(GroupJobsCollector())
    assert registry.get_sample_value("groupjobs_up", {"queue": "default"}) == 1


@pytest.mark.once
def test_the_extra_is_named_where_its_package_is_missing() -> None:
    program = """
import os, sys
sys.modules["prometheus_client"] = None
sys.modules["opentelemetry"] = None
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from django.test import RequestFactory
from groupjobs import tracing, views
answer = views.metrics_view(RequestFactory().get("/"))
print(answer.status_code, answer.content.decode())
try:
    tracing.install()
except ImportError as error:
    print(error)
"""
    shown = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "501 The metrics of groupjobs need the package prometheus-client: install groupjobs[prometheus]." in shown
    assert "install groupjobs[otel]" in shown


@pytest.mark.celery
def test_children_of_a_worker_count_for_the_fleet(start_worker: StartWorker, store: Store) -> None:
    start_worker(groupjobs={"METRICS": True}, options=QUICK)
    noop.enqueue_many([((), {})] * 30)
    name = ("groupjobs_runs_total", "tests.jobsapp.jobs.noop", "default", "succeeded")
    wait_until(lambda: scraped().get(name) == 30, 30, "all runs are counted")
