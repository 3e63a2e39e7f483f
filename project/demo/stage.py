"""Everything that the demo starts, in the order it needs it, and stops again in reverse."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import redis
from django.db import connections

from project import embedded
from project.demo.browser import Browser
from project.demo.failure import DemoFailed
from project.demo.processes import Program

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0  # seconds that a program may take to be ready


class Stage:
    """Redis, database, web server and worker, in a temporary folder of their own.

    `REDIS_URL` and `DATABASE_URL` of the environment are used as they are, and then belong to somebody
    else: they are not started, not flushed, not stopped. `say` takes one line for the person who watches.
    """

    def __init__(self, workers: int, port: int, say: Callable[[str], None]) -> None:
        self._workers, self._port, self._say = workers, port, say
        self._stack = ExitStack()
        self._programs: list[Program] = []
        self.own_redis = "REDIS_URL" not in os.environ
        self.address = ""

    def __enter__(self) -> Stage:
        """Start everything; whatever fails, what was started is stopped."""
        with ExitStack() as stack:
            stack.callback(_ignore_interrupts)
            self._stack = stack
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="logbook-")))
            self._env = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self._open_redis()
            self._open_database()
            self._start_programs()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop everything, undisturbed by a second Ctrl-C."""
        _ignore_interrupts()
        self._say("stopping what was started")
        connections.close_all()
        self._stack.close()

    def check(self) -> None:
        """Raise DemoFailed if a program has ended by itself."""
        for program in (self.web, self.worker):
            program.check()

    def start_worker(self) -> None:
        """Start a Celery worker; `worker` is the newest."""
        argv = [sys.executable, "-m", "celery", "-A", "project", "worker"]
        options = ["--pool", "prefork", "--concurrency", str(self._workers), "--loglevel", "INFO"]
        name = f"demo{len(self._programs)}@%h"
        self.worker = self._start("Celery worker", [*argv, *options, "--hostname", name])

    def flush(self) -> int:
        """FLUSHALL the demo's own Redis; answers a number that is below every fence given out from now on."""
        with redis.Redis.from_url(self._env["REDIS_URL"]) as client:
            client.flushall()
            seconds, microseconds = client.time()
        return int(seconds) * 1_000_000 + int(microseconds)

    def _open_redis(self) -> None:
        if self.own_redis:
            self._env["REDIS_URL"] = self._stack.enter_context(embedded.valkey(self._folder)).url
        self._say(f"Redis: {'an embedded Valkey' if self.own_redis else 'as REDIS_URL says'}")

    def _open_database(self) -> None:
        if "DATABASE_URL" not in os.environ:
            path = self._folder / "logbook.sqlite3"
            self._env["DATABASE_URL"] = f"sqlite:///{path}"
            # This process read its settings before the folder existed.
            connections.databases["default"]["NAME"] = str(path)
        self._say(f"database: {connections['default'].vendor}")
        migrate = self._start("migration", self._manage("migrate", "--no-input", "--verbosity", "0"))
        migrate.finish(PATIENCE)

    def _start_programs(self) -> None:
        arguments = ["runserver", "--noreload", "--insecure", f"127.0.0.1:{self._port}"]
        self.web = self._start("web server", self._manage(*arguments))
        self.start_worker()
        self.web.wait_for(self._web_answers, PATIENCE)
        self._say(f"web server: {self.address}")
        self.worker.wait_for(lambda: " ready." in self.worker.text(), PATIENCE)
        self._say(f"Celery worker: prefork with {self._workers} children")

    def _web_answers(self) -> bool:
        bound = re.search(r"development server at (http://[\w.]+:[1-9]\d*)/", self.web.text())
        if bound is None:
            return False
        self.address = bound.group(1)
        return Browser(self.address).answers()

    def _manage(self, *arguments: str) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), *arguments]

    def _start(self, name: str, argv: list[str]) -> Program:
        log = self._folder / f"{len(self._programs)}-{name.replace(' ', '-')}.log"
        program = Program(name, argv, self._env, ROOT, log)
        self._programs.append(program)
        self._stack.callback(program.stop)
        return program


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
