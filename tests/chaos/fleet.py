"""The Celery workers: as many as there should be, replaced when they end."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from pathlib import Path

from tests.chaos.record import Record, below, command_of
from tests.servers.worker import Worker

PATIENCE = 60.0  # seconds for a warm shutdown


class Fleet:
    """`size` workers of `concurrency` children each; logs go to `folder`."""

    def __init__(self, folder: Path, env: Mapping[str, str], size: int, concurrency: int, record: Record) -> None:
        self.folder = folder
        self.env = env
        self.size = size
        self.concurrency = concurrency
        self.record = record
        self.workers: list[Worker] = []
        self.leaving: list[tuple[Worker, float]] = []
        self.overdue: list[str] = []
        self.logs: list[Path] = []

    def launch(self) -> Worker:
        """One more worker."""
        name = f"w{len(self.logs) + 1}"
        log = self.folder / f"{name}.log"
        worker = Worker(
            name, log, self.env, concurrency=self.concurrency, options=("--without-gossip", "--without-mingle")
        )
        self.logs.append(log)
        self.workers.append(worker.launch())
        return worker

    def supervise(self) -> None:
        """Replace who has ended; end by force who does not leave."""
        self.workers = [worker for worker in self.workers if worker.alive]
        while len(self.workers) < self.size:
            self.launch()
        for worker, deadline in self.leaving:
            if worker.alive and time.monotonic() > deadline:
                self.overdue.append(f"worker {worker.name} did not leave within {PATIENCE:g} s")
                self.record.kill(worker.pid, worker.pid, "main")
        self.leaving = [(worker, deadline) for worker, deadline in self.leaving if worker.alive]

    def retire(self, worker: Worker) -> None:
        """Warm shutdown of one worker, whose successor is up or on its way."""
        self.workers.remove(worker)
        self.leaving.append((worker, time.monotonic() + PATIENCE))
        worker.process.send_signal(signal.SIGTERM)

    def watchdog(self, worker: Worker) -> int | None:
        """Process id of a worker's watchdog, if it has one now."""
        found = [process.pid for process in below(worker.pid) if "watchdog" in command_of(process)]
        return found[0] if found else None

    def end(self) -> None:
        """Leave nothing running."""
        for worker in [*self.workers, *(worker for worker, _ in self.leaving)]:
            worker.end()
