"""Everything that the demo starts, in the order it needs it, and stops again in reverse."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from django.conf import settings
from django.db import connections

from groupjobs import conf
from groupjobs.models import JobRun
from groupjobs.store import Store
from groupjobs.store.keys import line_name
from project import folders
from project.demo.browser import Browser
from project.demo.desk import Desk
from project.demo.failure import DemoFailed
from project.demo.processes import Program
from project.embedded import EmbeddedValkey, NotStarted

PATIENCE = 60.0  # seconds that a program may take to be ready


class Stage:
    """Redis, database, web server and worker, with logs in a temporary folder.

    `REDIS_URL` and `DATABASE_URL` of the environment are used as they are and belong to somebody else:
    nothing is flushed there, and the demo's keys and Celery queue have names of their own. `say` takes
    one line for the person who watches.
    """

    web: Program

    def __init__(self, children: int, port: int, say: Callable[[str], None], workers: int = 1) -> None:
        """`workers` Celery workers of so many `children` each."""
        self.own_redis = not os.environ.get("REDIS_URL")
        self.address = ""
        self.workers: list[Program] = []
        self.desk = Desk(Path())
        self._open_desk = False
        self._children, self._count, self._port, self._say = children, workers, port, say
        self._stack = ExitStack()
        self._queue = f"logbook-demo-{secrets.token_hex(4)}"
        self._env = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self._programs = 0

    def __enter__(self) -> Self:
        """Start everything; whatever fails, what was started is stopped."""
        with ExitStack() as stack:
            stack.callback(connections.close_all)
            self._stack = stack
            self._folder = folders.short_folder("logbook-")
            stack.callback(folders.remove, self._folder)
            self.desk = Desk(self._folder)
            if self._open_desk:
                self._env["DEMO_DESK"] = str(self._folder)
                self.desk.tell({"own_redis": self.own_redis, "workers": [], "faults": []})
            self._open_redis()
            self._open_database()
            self._start_programs()
            stack.callback(self._say, "stopping what was started")
            stack.callback(_ignore_interrupts)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything, undisturbed by a second Ctrl-C."""
        self._stack.close()

    def check(self) -> None:
        """Raise DemoFailed if a program has ended by itself."""
        self.web.check()
        for worker in self.workers:
            worker.check()

    @property
    def worker(self) -> Program:
        """The newest Celery worker."""
        return self.workers[-1]

    def start_worker(self) -> Program:
        """Start one more Celery worker."""
        argv = [sys.executable, "-m", "celery", "-A", "project", "worker", "--loglevel", "INFO"]
        pool = ["--pool", "prefork", "--concurrency", str(self._children)]
        names = ["--queues", self._queue, "--hostname", f"demo{self._programs}@%h"]
        self.workers.append(self._start("Celery worker", [*argv, *pool, *names]))
        return self.worker

    def kill(self, worker: Program) -> None:
        """SIGKILL one of its own workers."""
        self.workers.remove(worker)
        worker.kill()

    def open_desk(self) -> None:
        """Let the pages of the web server, which is not started yet, ask for damage."""
        self._open_desk = True

    def flush(self) -> int:
        """FLUSHALL the demo's own Redis; answers a number that is below every fence given out from now on."""
        with redis.Redis.from_url(self._env["REDIS_URL"]) as client:
            client.flushall()
            seconds, microseconds = client.time()
        return int(seconds) * 1_000_000 + int(microseconds)

    def leased(self, runs: Mapping[int, int]) -> bool:
        """Whether one of the runs (id -> fence) is leased under that fence."""
        with redis.Redis.from_url(self._env["REDIS_URL"]) as client:
            store = Store(client, prefix=self._queue, queue="default", ttl=conf.current().worker_ttl)
            groups = JobRun.objects.filter(pk__in=runs).values_list("pk", "group")
            entries = store.snapshot([(run, line_name(group, run)) for run, group in groups]).entries
        return any(entry.place == "leased" and entry.fence == runs[run] for run, entry in entries.items())

    def _open_redis(self) -> None:
        if self.own_redis:
            try:
                valkey = self._stack.enter_context(EmbeddedValkey())
            except NotStarted as error:
                raise DemoFailed(str(error)) from None
            self._env.update(REDIS_URL=valkey.url, BROKER_URL=os.environ.get("BROKER_URL") or valkey.broker_url)
        else:
            self._stack.callback(self._forget_keys)
        given = json.loads(os.environ.get("GROUPJOBS") or "{}")
        own = {"PREFIX": self._queue, "QUEUES": {"default": {"celery_queue": self._queue}}}
        self._env["GROUPJOBS"] = json.dumps({**given, **own})
        self._say(f"Redis: {'an embedded Valkey' if self.own_redis else 'the server of REDIS_URL'}")

    def _forget_keys(self) -> None:
        """Remove what the demo left in a server that is not its own."""
        with redis.Redis.from_url(self._env["REDIS_URL"]) as client:
            for key in client.scan_iter(match=f"*{self._queue}*", count=1000):
                client.delete(key)

    def _open_database(self) -> None:
        if not os.environ.get("DATABASE_URL"):
            path = self._folder / "logbook.sqlite3"
            self._env["DATABASE_URL"] = f"sqlite:///{path}"
            # This process read its settings before the folder existed.
            connections.databases["default"]["NAME"] = str(path)
        self._say(f"database: {connections['default'].display_name}")
        migration = self._start("migration", self._manage("migrate", "--no-input", "--verbosity", "0"))
        migration.finish(PATIENCE)

    def _start_programs(self) -> None:
        arguments = ["runserver", "--noreload", "--insecure", f"127.0.0.1:{self._port}"]
        self.web = self._start("web server", self._manage(*arguments))
        for _ in range(self._count):
            self.start_worker()
        self.web.wait_for(self._web_answers, PATIENCE)
        self._say(f"web server: {self.address}")
        for worker in self.workers:
            worker.wait_for(lambda worker=worker: worker.ready, PATIENCE)  # type: ignore[misc]
            self._say(f"Celery worker: process {worker.pid}, prefork, {self._children} children")

    def _web_answers(self) -> bool:
        bound = re.search(r"server at (http://127\.0\.0\.1:[1-9]\d*)/", self.web.text())
        if bound is None:
            return False
        self.address = bound.group(1)
        return Browser(self.address).answers()

    def _manage(self, *arguments: str) -> list[str]:
        return [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]

    def _start(self, name: str, argv: list[str]) -> Program:
        log = self._folder / f"{self._programs}-{name.replace(' ', '-')}.log"
        program = Program(name, argv, self._env, settings.BASE_DIR, log)
        self._programs += 1
        self._stack.callback(program.stop)
        return program


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
