"""One Valkey and one PostgreSQL for all systems; each visit finds them empty."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from bench.peers.costs import SCRIPTS
from bench.peers.places import ROOT
from bench.peers.systems import System
from bench.world import GaveUp
from project.embedded import EmbeddedValkey
from project.embedded_postgres import EmbeddedPostgres


class Servers:
    """Their addresses, their counters, and their state."""

    flush = 1.2  # seconds until PostgreSQL has written its counters

    def __init__(self, valkey: EmbeddedValkey, postgres: EmbeddedPostgres) -> None:
        self.valkey = valkey
        self.postgres = postgres
        self.client = valkey.client()
        self.made: set[str] = set()
        self.database: psycopg.Connection[Any] | None = None

    def addresses(self, system: System) -> dict[str, str]:
        """The environment variables that name the servers for a system."""
        redis = {"path": str(self.valkey.socket), "password": self.valkey.password}
        own = not system.requires
        broker = self.valkey.broker_url if own or "celery" in system.name else self.valkey.url
        return {
            "REDIS_URL": self.valkey.url if own else broker,
            "BROKER_URL": broker,
            "BENCH_REDIS": json.dumps(redis),
            "DATABASE_URL": self.postgres.url(_name(system)),
        }

    def prepare(self, system: System, env: Mapping[str, str]) -> None:
        """An empty Redis, and a database with empty tables."""
        self.client.flushall()
        name = _name(system)
        if name not in self.made:
            with psycopg.connect(self.postgres.url(), autocommit=True) as connection:
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
            for command in system.setup:
                done = subprocess.run(
                    system.program(*command), env=dict(env), cwd=ROOT, capture_output=True, text=True, check=False
                )
                if done.returncode:
                    raise GaveUp(f"{system.name}: {command} failed: {done.stderr[-1000:]}")
            self.made.add(name)
        self.database = psycopg.connect(self.postgres.url(name), autocommit=True)
        for table in system.tables:
            self.database.execute(sql.SQL("truncate {} cascade").format(sql.Identifier(table)))

    def leave(self) -> None:
        """Let go of the system's database."""
        if self.database is not None:
            self.database.close()
            self.database = None

    def analyse(self) -> None:
        """What autovacuum does in daily life: the planner knows the tables' sizes."""
        assert self.database is not None
        self.database.execute("vacuum analyze")

    def left(self, system: System) -> int:
        """Jobs that are not settled."""
        assert self.database is not None
        with self.database.cursor() as cursor:
            return system.left(self.client, cursor)

    def saved(self, system: System) -> int:
        """Results that are written, for a system that writes them later; else 0."""
        assert self.database is not None
        row = self.database.execute(system.saved.encode()).fetchone() if system.saved else None
        return int(row[0]) if row else 0

    def pids(self) -> list[int]:
        """Their processes."""
        return [int(self.client.info("server")["process_id"]), self.postgres.pid]

    def counters(self) -> tuple[float, float, float]:
        """Script calls, commands and commits until now."""
        assert self.database is not None
        stats = self.client.info("commandstats")
        scripts = sum(stats.get(name, {}).get("calls", 0) for name in SCRIPTS)
        found = self.database.execute("select xact_commit from pg_stat_database where datname = current_database()")
        row = found.fetchone()
        return scripts, sum(entry["calls"] for entry in stats.values()), row[0] if row else 0


def _name(system: System) -> str:
    return system.name.replace("-", "_")


@contextmanager
def running() -> Iterator[Servers]:
    """Start both; they end with the block."""
    valkey = EmbeddedValkey().start()
    postgres = EmbeddedPostgres().start()
    try:
        yield Servers(valkey, postgres)
    finally:
        valkey.stop()
        postgres.stop()
