"""The servers and the worker of one benchmark; everything ends with the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from project import child, folders
from project.embedded import EmbeddedValkey, end
from project.embedded_postgres import EmbeddedPostgres

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 300.0  # seconds after which a benchmark gives up


class GaveUp(Exception):
    """Something did not happen in time, or a count is not exact."""


def wait(done: Callable[[], bool], what: str, pause: float = 0.02) -> float:
    """Poll until it is done; answers the seconds that it took."""
    begun = time.monotonic()
    while not done():
        if time.monotonic() - begun > PATIENCE:
            raise GaveUp(f"{what}: not within {PATIENCE:g} s")
        time.sleep(pause)
    return time.monotonic() - begun


class World(NamedTuple):
    """A folder for logs and files, and the queue's server."""

    folder: Path
    valkey: EmbeddedValkey


@contextmanager
def servers(database: str) -> Iterator[World]:
    """Valkey and a database ("postgres" or "sqlite"), named in this process's environment."""
    folder = folders.short_folder("groupjobs-bench-")
    valkey = EmbeddedValkey().start()
    postgres = EmbeddedPostgres().start() if database == "postgres" else None
    os.environ["REDIS_URL"] = valkey.url
    os.environ["BROKER_URL"] = valkey.broker_url
    os.environ["DATABASE_URL"] = postgres.url() if postgres else f"sqlite:///{folder / 'bench.sqlite3'}"
    os.environ["DJANGO_SETTINGS_MODULE"] = "bench.settings"
    try:
        yield World(folder, valkey)
    finally:
        valkey.stop()
        if postgres is not None:
            postgres.stop()
        folders.remove(folder)


@contextmanager
def worker(folder: Path, children: int) -> Iterator[None]:
    """A real Celery prefork worker of the demo project, ready to serve."""
    log = folder / "worker.log"
    process = launch("bench", log, children, os.environ)
    try:
        wait(lambda: ready(log, process.poll()), "the worker is ready")
        yield
    finally:
        end(process, signal.SIGTERM)


def launch(name: str, log: Path, children: int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a Celery prefork worker of the demo project with this Celery name; it ends with this process."""
    command = [sys.executable, "-m", "celery", "-A", "project", "worker", "--loglevel", "INFO"]
    command += ["--pool", "prefork", "--concurrency", str(children), "--hostname", f"{name}@%h"]
    return child.start(command, log=log, env={**env, "LOG_LEVEL": "INFO"}, folder=ROOT)


def ready(log: Path, status: int | None) -> bool:
    """Whether the worker with this log takes messages; GaveUp when it has ended (`status` is not None)."""
    text = log.read_text(errors="replace") if log.exists() else ""
    if status is not None:
        raise GaveUp(f"the worker ended with status {status}:\n{text[-2000:]}")
    return " ready." in text
