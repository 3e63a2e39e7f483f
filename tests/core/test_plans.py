"""No query of ours reads the whole table of runs, however many have ended."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from groupjobs import control, health, recovery
from groupjobs.admin import searching
from groupjobs.explain import traffic
from groupjobs.ledger import conditions
from groupjobs.metrics.exposition import exposition
from groupjobs.models import JobRun
from groupjobs.recovery import Scope
from groupjobs.store import Store
from project.embedded import EmbeddedValkey
from tests.core.plans import Query, fill, queries, reads_the_table
from tests.core.rows import change, new, running
from tests.core.serving import drain, reopen
from tests.jobsapp.jobs import fails, flaky, noop, note
from tests.semantics.jobs import newest, once

pytestmark = pytest.mark.skipif(connection.vendor == "mysql", reason="MariaDB explains in other words")

RUNS = "/admin/groupjobs/jobrun/"
GROUPS = "/admin/groupjobs/jobgroup/"
PAGES = (
    RUNS, f"{RUNS}?p=o500", f"{RUNS}?p=n500", f"{RUNS}?status=live", f"{RUNS}?status=bad", f"{RUNS}?status=READY",
    f"{RUNS}?status=FAILED", f"{RUNS}?queue=nothing", f"{RUNS}?job=nothing",
    f"{RUNS}?group=g", f"{RUNS}?worker=w", f"{RUNS}?trouble=ghost", f"{RUNS}?trouble=unreported",
    f"{RUNS}?trouble=unpublished", f"{RUNS}?finished=hour", f"{RUNS}?enqueued=hour", f"{RUNS}?q=nothing",
    f"{RUNS}?q=12", f"{RUNS}?status=live&job=nothing", f"{RUNS}drift/", GROUPS, f"{GROUPS}?order=name",
    f"{GROUPS}?order=held", f"{GROUPS}?order=unreported", f"{GROUPS}?q=g", f"{GROUPS}?state=running",
    f"{GROUPS}group/?queue=default&group=g", f"{GROUPS}queues/",
)  # fmt: skip


def everything_is_enqueued_and_served() -> None:
    noop.enqueue_many([((), {})] * 70)
    note.enqueue("a")
    for job in (once, newest):
        job.enqueue(key="k")
        job.enqueue(key="k")
    flaky.enqueue("b", failures=1)
    fails.using(group="g", after_failure="cancel").enqueue("c")
    note.enqueue("d")
    drain(lambda: not conditions.live(JobRun.objects.filter(queue="default")).exists())


def everything_is_recovered() -> None:
    new(3, group="g")
    running(group="other")
    change(new(group="dead")[0], status="ABANDONED")
    recovery.recover(dry_run=True)
    recovery.recover()
    recovery.recover(Scope(queue="default", group="g"))
    recovery.recover(Scope(queue="default", runs=(1, 2)))
    for kind in ("quick", "full"):
        recovery.sweep("default", kind)


def a_person_acts() -> None:
    first, second, third = new(3, group="g")
    control.hold("default", "g")
    control.skip_head("default", "g")
    control.reschedule([second.pk], None)
    control.cancel([first.pk, third.pk])
    control.retry([first.pk])
    control.retry([third.pk], as_new=True)
    control.resume("default", "g")


def everything_is_shown() -> None:
    traffic.forget()
    new(3, group="g")
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    for page in PAGES:
        assert client.get(page).status_code == 200, page
    for options in ((), ("--group", "g"), ("--health",)):
        try:
            call_command("groupjobs_status", *options, stdout=StringIO())
        except SystemExit:
            assert options == ("--health",)
    health.check()
    exposition()
    call_command("prune_runs", "--dry-run", stdout=StringIO())
    call_command("prune_runs", "--limit", "10", stdout=StringIO())


def whole(seen: list[Query], windows: bool = False) -> dict[str, list[str]]:
    """What each query asks that may read the whole table, and its plan."""
    asked = [(sql, params) for sql, params in seen if not sql.lstrip().lower().startswith("insert")]
    plans = {sql: reads_the_table(sql, params, windows) for sql, params in asked}
    return {sql[sql.find("WHERE") :]: plan for sql, plan in plans.items() if plan}


@pytest.mark.parametrize(
    "act", [everything_is_enqueued_and_served, everything_is_recovered, a_person_acts, everything_is_shown]
)
def test_f1_no_query_reads_the_whole_table(
    store: Store, act: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(16)
    monkeypatch.setattr(searching, "WINDOW", 500)  # of the latest runs: a part of this table
    with queries() as seen:
        act()
    assert len(seen) > 5
    found = whole(seen, windows=act is everything_is_shown)
    assert not found, "\n".join(f"{sql}: {plan}" for sql, plan in found.items())


def test_f1_a_rebuild_reads_live_rows_only(short_ttl: None, store: Store, valkey: EmbeddedValkey) -> None:
    fill(16)
    new(3, group="g")
    running(group="other")
    with queries() as seen:
        valkey.flush()
        reopen()
    found = whole(seen)
    assert not found, "\n".join(f"{sql}: {plan}" for sql, plan in found.items())


def test_a_query_that_would_read_the_whole_table_is_found(store: Store) -> None:
    """The measure itself."""
    fill(16)
    assert reads_the_table("SELECT id FROM groupjobs_jobrun WHERE worker = %s", ["w"])
    assert reads_the_table("SELECT id FROM groupjobs_jobrun WHERE job = %s ORDER BY id DESC LIMIT 5", ["w"])
    assert not reads_the_table("SELECT id FROM groupjobs_jobrun WHERE id = %s", [3])
    assert not reads_the_table("SELECT id FROM groupjobs_jobrun ORDER BY id DESC LIMIT 5", [])
