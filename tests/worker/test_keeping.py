"""The database connection of a consumer lasts from one execution to the next, as CONN_MAX_AGE says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections

from groupjobs.worker import keeping
from groupjobs.worker.keeping import kept_connection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    yield
    keeping._take_out()


def executed(age: float | None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One execution, with all connections closed before and after, as Celery does; the driver's connection."""
    connections.close_all()
    with kept_connection():
        monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", age)
        with connection.cursor() as cursor:
            cursor.execute("select 1")
        used = connection.connection
    connections.close_all()
    return used


def test_the_next_execution_has_the_same_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    first = executed(None, monkeypatch)
    assert executed(None, monkeypatch) is first


def test_other_tasks_do_not_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first = executed(None, monkeypatch)
    with connection.cursor() as cursor:
        cursor.execute("select 1")
    assert connection.connection is not first
    assert executed(None, monkeypatch) is first


def test_without_an_age_there_is_a_new_one_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = executed(0, monkeypatch)
    assert executed(0, monkeypatch) is not first


def test_each_thread_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    first, others = executed(None, monkeypatch), []

    def work() -> None:
        others.append(executed(0, monkeypatch))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert others[0] is not first
    assert executed(None, monkeypatch) is first


def test_one_that_was_left_in_a_transaction_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    first = executed(None, monkeypatch)
    connections.close_all()
    with kept_connection():
        connection.set_autocommit(False)
    connections.close_all()
    assert executed(None, monkeypatch) is not first
