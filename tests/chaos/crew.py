"""The producers: processes that enqueue; a killed one is replaced by one that does the rest."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from project import child
from tests.chaos import noted
from tests.chaos.history import Intent
from tests.chaos.plan import Plan
from tests.servers.environment import ROOT

SETTLED: Final = 0.5  # seconds in which the database ends what a dead client had asked for


def start_module(module: str, *arguments: str, log: Path) -> subprocess.Popen[bytes]:
    """A Python process with this process's environment, which ends with it."""
    return child.start([sys.executable, "-m", module, *arguments], log=log, env=os.environ, folder=ROOT)


@dataclass(slots=True)
class Producer:
    """One producer process and what is left to it."""

    process: subprocess.Popen[bytes]
    notes: Path
    runs: int
    poison: int


class Crew:
    """Producers that together commit the plan's runs."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.log = folder / "producers.log"
        self.started = time.monotonic()
        self.working: list[Producer] = []
        self.all_notes: dict[Path, float | None] = {}  # with the moment at which the writer was known to be dead
        self.failures: list[str] = []
        self._numbers = itertools.count(1)

    def start(self, producers: int = 2) -> None:
        """Share the work out."""
        self.started = time.monotonic()
        for number in range(producers):
            poison = self.plan.poison // producers + (number < self.plan.poison % producers)
            self.launch(self.plan.runs // producers + (number < self.plan.runs % producers), poison)

    def launch(self, runs: int, poison: int) -> None:
        """One more producer, for what is left of the time."""
        name = f"p{next(self._numbers)}"
        notes = self.folder / f"{name}.jsonl"
        seconds = max(1.0, self.plan.seconds * 0.9 - (time.monotonic() - self.started))
        options = {"name": name, "notes": notes, "seed": self.plan.seed, "runs": runs, "seconds": seconds}
        options |= {"groups": self.plan.groups, "heavy": self.plan.heavy, "poison": poison}
        arguments = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        process = start_module("tests.chaos.producer", *arguments, log=self.log)
        self.working.append(Producer(process, notes, runs, poison))
        self.all_notes[notes] = None

    def supervise(self) -> None:
        """Replace who was killed; remember who failed."""
        for producer in [producer for producer in self.working if producer.process.poll() is not None]:
            self.working.remove(producer)
            status = producer.process.poll()
            if status and status > 0:
                self.failures.append(f"a producer ended with status {status}:\n{child.tail(self.log)}")
            elif status:
                self._replace(producer)

    def _replace(self, producer: Producer) -> None:
        self.all_notes[producer.notes] = time.monotonic() + SETTLED
        done = list(noted.intents(noted.lines(producer.notes)))
        poison = producer.poison - sum(intent.expected == "ABANDONED" for intent in done)
        self.launch(max(0, producer.runs - noted.committed(done)), max(0, poison))

    def intents(self) -> Iterator[Intent]:
        """What all of them meant to enqueue."""
        for notes, killed in self.all_notes.items():
            yield from noted.intents(noted.lines(notes), killed)

    def end(self) -> None:
        """Leave nothing running."""
        for producer in self.working:
            producer.process.kill()
            producer.process.wait()
