"""Enqueue: rows in the caller's transaction, publication on its commit, and servers that are down or silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management import call_command
from django.db import connections, transaction
from django.test import override_settings

from groupjobs import errors
from groupjobs.models import JobProgress, JobRun
from groupjobs.store import Store
from tests.core.rows import again
from tests.core.serving import drain, known, serve, statuses, traces
from tests.jobsapp import jobs

pytestmark = pytest.mark.django_db(transaction=True)
Journal = Callable[[], list[list[Any]]]


def scripts_run(client: redis.Redis) -> int:
    return sum(
        stats["calls"] for name, stats in client.info("commandstats").items() if name.startswith("cmdstat_evalsha")
    )


# --- transactions


def test_in_autocommit_a_run_is_published_at_once(store: Store) -> None:
    result = jobs.note.enqueue(label="a")
    assert known(store, [result]) == {int(result.id)}
    row = again(int(result.id))
    assert (row.status, row.group, row.unpublished) == ("READY", "g", False)
    assert JobProgress.objects.filter(run=row).exists()


def test_d5_a_rolled_back_enqueue_leaves_nothing(store: Store, journal: Journal) -> None:
    with transaction.atomic():
        jobs.note.enqueue(label="a")
        jobs.note.enqueue_many([{"label": "b"}, {"label": "c"}])
        assert traces(store) == []
        transaction.set_rollback(True)
    assert traces(store) == []
    assert JobRun.objects.count() == JobProgress.objects.count() == 0
    serve()
    assert journal() == []


def test_d5_nothing_is_published_before_the_outermost_commit(store: Store) -> None:
    with transaction.atomic():
        with transaction.atomic(), transaction.atomic():
            jobs.note.enqueue(label="a")
        assert traces(store) == []
        jobs.note.enqueue(label="b")
        assert traces(store) == []
    assert known(store, list(JobRun.objects.all())) == set(JobRun.objects.values_list("id", flat=True))
    assert len(known(store, list(JobRun.objects.all()))) == 2


def test_d5_a_rolled_back_savepoint_leaves_nothing_of_its_own(store: Store, journal: Journal) -> None:
    with transaction.atomic():
        jobs.note.enqueue(label="before")
        with transaction.atomic():
            jobs.note.enqueue(label="inside")
            transaction.set_rollback(True)
        with transaction.atomic():
            jobs.note.enqueue(label="kept")
        mark = transaction.savepoint()
        jobs.note.enqueue(label="by hand")
        transaction.savepoint_rollback(mark)
        jobs.note.enqueue(label="after")
    drain()
    assert journal() == [["before"], ["kept"], ["after"]]
    assert JobRun.objects.count() == JobProgress.objects.count() == 3
    assert traces(store) == []


def test_a_handler_s_error_rolls_back_what_it_caught(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():  # noqa: PT012 (the block is the transaction)
        jobs.note.enqueue(label="a")
        raise ZeroDivisionError
    assert JobRun.objects.count() == 0
    assert traces(store) == []


def test_an_on_commit_hook_that_raises_does_not_stop_the_publication(store: Store) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    with transaction.atomic():
        transaction.on_commit(broken, robust=True)
        jobs.note.enqueue(label="a")
        transaction.on_commit(lambda: jobs.note.enqueue(label="b"))
    assert len(known(store, list(JobRun.objects.all()))) == 2


def test_refused_arguments_write_nothing(store: Store) -> None:
    with pytest.raises(errors.Refused, match="label is nan"):
        jobs.note.enqueue_many([{"label": "a"}, {"label": float("nan")}])
    with pytest.raises(errors.Refused):
        jobs.note.enqueue_many([{"label": "a"}, {"lable": "b"}])
    assert JobRun.objects.count() == 0
    assert traces(store) == []


def test_enqueue_in_async_code(store: Store) -> None:
    async def several() -> list[Any]:
        return [await jobs.note.aenqueue(label="a"), *await jobs.note.aenqueue_many([{"label": "b"}])]

    results = async_to_sync(several)()
    assert known(store, results) == {int(result.id) for result in results}
    drain()
    assert statuses(results) == ["SUCCEEDED"] * 2


@pytest.fixture
def other(tmp_path: Path) -> Iterator[str]:
    """A second database, beside `default`."""
    connections.databases["other"] = {
        **connections["default"].settings_dict,
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "other.sqlite3"),
        "OPTIONS": {"timeout": 20},
    }
    connections["other"].connect()  # Django's test cases forbid what they were not told of to connect by itself
    yield "other"
    connections["other"].close()
    del connections["other"]
    del connections.databases["other"]


# --- several databases


def test_a_transaction_of_another_database_does_not_matter(store: Store, other: str) -> None:
    with transaction.atomic(using=other):
        result = jobs.note.enqueue(label="a")
        assert known(store, [result]) == {int(result.id)}
        transaction.set_rollback(True, using=other)
    with transaction.atomic(), transaction.atomic(using=other):
        second = jobs.note.enqueue(label="b")
        transaction.set_rollback(True, using=other)
    assert known(store, [second]) == {int(second.id)}


def test_rows_may_live_in_another_database_than_the_default(store: Store, other: str, journal: Journal) -> None:
    call_command("migrate", "groupjobs", database=other, verbosity=0)
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "DATABASE": other}):
        with transaction.atomic():
            result = jobs.note.enqueue(label="a")
            assert traces(store) != []
            transaction.set_rollback(True)
        with transaction.atomic(using=other):
            jobs.note.enqueue(label="b")
            transaction.set_rollback(True, using=other)
        drain(lambda: not JobRun.objects.using(other).filter(status="READY").exists())
        rows = JobRun.objects.using(other)
        assert list(rows.values_list("id", "status")) == [(int(result.id), "SUCCEEDED")]
    assert JobRun.objects.using("default").count() == 0
    assert journal() == [["a"]]


# --- in a handler


def test_enqueue_in_a_handler(store: Store, journal: Journal) -> None:
    jobs.parent.enqueue(label="a", children=2)
    jobs.note.enqueue(label="b")
    drain()
    assert journal() == [["a"], ["b"], ["a.0"], ["a.1"]]


def test_what_a_failed_atomic_handler_enqueued_never_was(store: Store, journal: Journal) -> None:
    result = jobs.failing_parent.enqueue(label="a")
    drain()
    assert journal() == [["a"]]
    assert list(JobRun.objects.values_list("id", "status")) == [(int(result.id), "FAILED")]


# --- many


def test_enqueue_many_makes_one_script_call_a_thousand(store: Store) -> None:
    before = scripts_run(store.client)
    results = jobs.note.enqueue_many([{"label": str(number), "group": f"g{number % 10}"} for number in range(2500)])
    assert scripts_run(store.client) - before == 3
    assert len(known(store, results)) == 2500
    ids = [int(result.id) for result in results]
    assert ids == sorted(ids)
    assert [again(ids[number]).kwargs["label"] for number in (0, 999, 1000, 2499)] == ["0", "999", "1000", "2499"]


def test_a_hundred_enqueues_in_one_transaction_keep_their_order(store: Store, journal: Journal) -> None:
    with transaction.atomic():
        for number in range(100):
            jobs.note.enqueue(label=str(number))
    drain()
    assert journal() == [[str(number)] for number in range(100)]
