"""One chaos run: servers, fleet, producers, and an agenda of things to do at their times."""

from __future__ import annotations

import heapq
import itertools
import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from project.embedded import EmbeddedValkey
from project.embedded_postgres import EmbeddedPostgres
from tests.chaos.crew import Crew
from tests.chaos.fleet import Fleet
from tests.chaos.plan import Plan
from tests.chaos.record import Record
from tests.servers.environment import ROOT

Action = Callable[[], None]


class Chaos:
    """What faults act upon."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.rng = random.Random(plan.seed)
        self.valkey = EmbeddedValkey()
        self.broker = EmbeddedValkey()
        self.postgres = EmbeddedPostgres()
        self.record = Record()
        self.down: set[str] = set()  # servers that a fault has in its hands
        self.recoveries: list[tuple[subprocess.Popen[bytes], Path]] = []
        self.statuses: list[int] = []  # of recoveries that ended
        self.crashes: list[str] = []  # of commands
        self.handler_log = folder / "handlers.log"
        self.crew = Crew(plan, folder)
        self.started = time.monotonic()
        self._agenda: list[tuple[float, int, Action]] = []
        self._numbers = itertools.count()
        self.fleet = Fleet(folder, {}, plan.workers, plan.concurrency, self.record)

    def start(self) -> None:
        """Start the servers and name them in the environment, also of this process."""
        for server in (self.valkey, self.broker, self.postgres):
            server.start()
        os.environ.update(self.environment())
        self.fleet.env = {**os.environ}

    def environment(self) -> dict[str, str]:
        """What every process of the run needs to know."""
        return {
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "DATABASE_URL": self.postgres.url(),
            "REDIS_URL": self.valkey.url,
            "BROKER_URL": self.broker.broker_url,
            "CHAOS_LOG": str(self.handler_log),
            "CHAOS_TTL": str(self.plan.ttl),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "GROUPJOBS": "{}",
            "CELERY": "{}",
            "LOG_LEVEL": "INFO",
        }

    def stop(self) -> None:
        """Stop everything."""
        self.crew.end()
        self.fleet.end()
        for process, _ in self.recoveries:
            process.kill()
            process.wait()
        for server in (self.valkey, self.broker, self.postgres):
            server.stop()

    def say(self, text: str) -> None:
        """One line of progress."""
        print(f"{time.monotonic() - self.started:7.1f} s  {text}", flush=True)

    def later(self, seconds: float, action: Action) -> None:
        """Do something in so many seconds."""
        heapq.heappush(self._agenda, (time.monotonic() + seconds, next(self._numbers), action))

    @property
    def agenda(self) -> int:
        """How many things are still to be done."""
        return len(self._agenda)

    def work(self, seconds: float) -> None:
        """Do what is due and look after fleet and producers, for so long."""
        until = time.monotonic() + seconds
        while True:
            while self._agenda and self._agenda[0][0] <= time.monotonic():
                heapq.heappop(self._agenda)[2]()
            self.fleet.supervise()
            self.crew.supervise()
            if (left := until - time.monotonic()) <= 0:
                return
            time.sleep(min(left, 0.05))
