"""Fixtures that every test may use: see tests/servers."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
import redis
from django.conf import settings

from project.embedded import EmbeddedValkey
from project.embedded_postgres import EmbeddedPostgres
from tests.servers.environment import ROOT, environment
from tests.servers.session import servers
from tests.servers.wire import SilentPort
from tests.servers.worker import Worker

# Modules that also run on the newest Django, see .ci/test.
API = frozenset(
    f"test_{name}"
    for name in (
        "aliases",
        "arguments",
        "backend",
        "checks",
        "conf",
        "jobs",
        "options",
        "payload",
        "policy",
        "queues",
        "registry",
        "results",
        "templates",
    )
)
# Folders whose tests are not about the database: they run on the first leg only.
NO_DATABASE = frozenset({"model", "traps", "store", "watchdog", "servers", "worker", "house", "observing"})
WORKERS = pytest.StashKey[list[Worker]]()


@pytest.fixture(scope="session")
def valkey_server() -> EmbeddedValkey:
    """The Valkey of this test process, as it is."""
    return servers.valkey


@pytest.fixture(autouse=True)
def valkey(valkey_server: EmbeddedValkey) -> Iterator[EmbeddedValkey]:
    """The Valkey of this test process, running and empty; a test may kill and start it."""
    _revive(valkey_server)
    valkey_server.flush()
    yield valkey_server
    _revive(valkey_server)


@pytest.fixture
def redis_client(valkey: EmbeddedValkey) -> Iterator[redis.Redis]:
    """A raw client of the empty Valkey, database 0."""
    with valkey.client() as client:
        yield client


@pytest.fixture(scope="session")
def postgres_server() -> EmbeddedPostgres:
    """The PostgreSQL of this test process; the test is skipped on other databases."""
    if servers.postgres is None:
        pytest.skip("needs the embedded PostgreSQL")
    return servers.postgres


@pytest.fixture
def silent_port() -> Iterator[SilentPort]:
    """A port that accepts and never answers."""
    with SilentPort() as port:
        yield port


class StartWorker(Protocol):
    """Starts a Celery worker on the test database and the test's Valkey; it ends with the test.

    `groupjobs` and `celery` override settings of that worker only ({"WORKER_TTL": 2},
    {"broker_transport_options": {...}}); `wait=False` answers before it is ready.
    """

    def __call__(
        self,
        *,
        pool: str = "prefork",
        concurrency: int = 2,
        queues: Sequence[str] | None = None,
        groupjobs: Mapping[str, Any] | None = None,
        celery: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        wait: bool = True,
    ) -> Worker:
        """Start one more."""


@pytest.fixture
def start_worker(
    request: pytest.FixtureRequest, transactional_db: None, valkey: EmbeddedValkey, tmp_path: Path
) -> Iterator[StartWorker]:
    """Starts real Celery workers; their logs are shown when the test fails."""
    started: list[Worker] = []
    request.node.stash[WORKERS] = started

    def start(
        *,
        groupjobs: Mapping[str, Any] | None = None,
        celery: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        wait: bool = True,
        **options: Any,
    ) -> Worker:
        name = f"w{len(started) + 1}"
        worker = Worker(name, tmp_path / f"{name}.log", environment(groupjobs, celery, env), **options)
        started.append(worker)
        worker.launch()
        if wait:
            worker.wait_ready()
        return worker

    yield start
    for worker in reversed(started):
        worker.end()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of the public API; leave out what needs no database on all databases but the first."""
    for item in items:
        if item.path.parent == ROOT / "tests" and item.path.stem in API:
            item.add_marker("api")
        if item.path.parent.name in NO_DATABASE:
            item.add_marker("once")
    if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        return
    left_out = [item for item in items if item.get_closest_marker("once")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of the workers of a failed test."""
    report = yield
    # A lone surrogate in a log cannot travel from a process of pytest-xdist.
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    if report.failed:
        for worker in item.stash.get(WORKERS, []):
            report.sections.append((f"worker {worker.name}", worker.tail()))
    return report


def _revive(server: EmbeddedValkey) -> None:
    server.start()
    server.resume()
