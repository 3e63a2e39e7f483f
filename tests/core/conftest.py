"""An open queue, a journal, and gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from groupjobs import bell, recovery
from groupjobs.consumer import patience
from groupjobs.moves import publishing
from groupjobs.store import Store, store_for
from project.embedded import EmbeddedValkey
from project.embedded_postgres import EmbeddedPostgres
from tests.core.rows import QUEUE
from tests.jobsapp import jobs
from tests.jobsapp import journal as journals
from tests.servers.wire import Proxy


@pytest.fixture(autouse=True)
def no_outage() -> Iterator[None]:
    """What an earlier test's servers did is forgotten."""
    outages = (bell._ringer().outage, publishing.outage, patience.database_outage, patience.redis_outage)
    for outage in outages:
        outage.ended()
    yield
    for outage in outages:
        outage.ended()


@pytest.fixture
def short_ttl() -> Iterator[None]:
    """Silent workers are dead after little more than half a second. Name it before `store`."""
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "WORKER_TTL": 0.6}):
        yield


@pytest.fixture
def store(transactional_db: None, valkey: EmbeddedValkey) -> Store:
    """The store of the default queue, which is open."""
    assert recovery.rebuild(QUEUE)
    return store_for(QUEUE)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[Any]]]:
    """What jobs of this test have said so far."""
    path = tmp_path / "journal"
    monkeypatch.setenv(journals.VARIABLE, str(path))
    return lambda: journals.said(path)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A gate that opens with `touch()`."""
    return tmp_path / "gate"


@pytest.fixture
def wire(postgres_server: EmbeddedPostgres) -> Iterator[Proxy]:
    """A second way to the embedded PostgreSQL, which can lose replies: see `rows.reroute`."""
    folder, name = postgres_server.folder / "wire", ".s.PGSQL.5432"
    folder.mkdir(exist_ok=True)
    with Proxy(folder / name, postgres_server.folder / name) as proxy:
        yield proxy
    (folder / name).unlink()


@pytest.fixture
def batches() -> Iterator[Callable[[], None]]:
    """Enqueues short runs, after which a consumer reserves 64 at once, however slow the machine is."""
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "COMMIT_INTERVAL": 5.0}):
        yield partial(_noops, 40)


def _noops(count: int) -> None:
    jobs.noop.enqueue_many([((), {})] * count)
