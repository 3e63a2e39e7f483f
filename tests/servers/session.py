"""A pytest plugin: the servers of one test process, started before Django reads its settings.

A Valkey of this process's own always; its address goes to REDIS_URL, whatever that was, because tests
flush the whole server. The database is chosen by GROUPJOBS_TEST_DB (sqlite, postgres or mariadb), or by
DATABASE_URL; tests only use the test database that Django makes beside it.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from project import folders
from project.embedded import EmbeddedValkey
from project.embedded_postgres import EmbeddedPostgres
from tests.servers import mariadb

LEG = "GROUPJOBS_TEST_DB"
LEGS = ("sqlite", "postgres", "mariadb")
STARTED = "GROUPJOBS_TEST_DB_STARTED"  # by the process that runs the xdist workers
NAME = "GROUPJOBS_TEST_DB_NAME"


class Servers:
    """What this process started."""

    def __init__(self) -> None:
        self.valkey = EmbeddedValkey()
        self.postgres: EmbeddedPostgres | None = None
        self.folder: Path | None = None

    def start(self) -> None:
        """Start them and name them in the environment, which settings and worker processes read."""
        self.valkey.start()
        os.environ["REDIS_URL"] = self.valkey.url
        os.environ["BROKER_URL"] = self.valkey.broker_url
        os.environ.setdefault(NAME, f"test_groupjobs_{os.getpid()}")
        if not os.environ.get("DATABASE_URL"):
            os.environ["DATABASE_URL"] = self._database(os.environ.get(LEG) or "sqlite")
            os.environ[STARTED] = "1"
        elif os.environ.get(STARTED) and os.environ["DATABASE_URL"].startswith("sqlite"):
            os.environ["DATABASE_URL"] = self._sqlite()

    def stop(self) -> None:
        """Stop them and remove their data."""
        self.valkey.stop()
        if self.postgres is not None:
            self.postgres.stop()
        if self.folder is not None:
            folders.remove(self.folder)

    def _database(self, leg: str) -> str:
        if leg == "sqlite":
            return self._sqlite()
        if leg == "postgres":
            self.postgres = EmbeddedPostgres().start()
            return self.postgres.url()
        if leg == "mariadb":
            return mariadb.url()
        raise pytest.UsageError(f"{LEG} must be one of {', '.join(LEGS)}, not {leg!r}")

    def _sqlite(self) -> str:
        self.folder = folders.short_folder("groupjobs-sqlite-")
        return f"sqlite:///{self.folder / 'db.sqlite3'}"


servers = Servers()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    """Before pytest-django reads the settings."""
    servers.start()
    return (yield)


def pytest_report_header() -> list[str]:
    """Say which servers the tests run on."""
    return [f"database: {os.environ['DATABASE_URL'].partition(':')[0]}; Valkey: {servers.valkey.folder}"]


def pytest_unconfigure() -> None:
    """At the very end."""
    servers.stop()
