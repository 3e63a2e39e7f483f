from __future__ import annotations

import signal

import psutil
import pytest
from django.db import connection

from project.databases import address, database
from tests.conftest import StartWorker
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.celery


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_worker_starts_and_stops(start_worker: StartWorker, pool: str) -> None:
    worker = start_worker(pool=pool)
    assert len(worker.children()) == (2 if pool == "prefork" else 0)
    below = worker.descendants()
    assert worker.stop() == 0
    wait_until(lambda: not any(found.is_running() for found in below), what="nothing is left of it")


def test_a_killed_worker_leaves_no_child(start_worker: StartWorker) -> None:
    worker = start_worker()
    below = worker.descendants()
    assert len(below) >= 2
    worker.kill()
    wait_until(lambda: not any(_runs(found) for found in below), what="nothing is left of it")


def test_a_stopped_worker_is_ended_with_its_test(start_worker: StartWorker) -> None:
    worker = start_worker(pool="solo")
    worker.send(signal.SIGSTOP)
    worker.end()
    assert not worker.alive


@pytest.mark.django_db
def test_the_address_of_the_test_database_leads_there() -> None:
    settings = database(address(connection.settings_dict))
    assert {key: settings.get(key, "") for key in ("ENGINE", "NAME", "USER", "HOST", "PORT")} == {
        key: str(connection.settings_dict[key]) for key in ("ENGINE", "NAME", "USER", "HOST", "PORT")
    }


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
