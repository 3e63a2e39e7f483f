"""A producer: enqueues in waves, in a process of its own, and notes what it did.

Notes are JSON lines: {"at", "batch", "runs": [[token, group, kind, delayed], ...]} just before an enqueue, and
{"at", "batch", "fate": committed | rolled_back | unknown} after the end of its transaction.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import django
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.utils import timezone

from tests.chaos.history import COMMITTED, ROLLED_BACK, UNKNOWN

WAVE = 0.2  # seconds between two waves
LONG = 0.15  # of the heavy runs take whole seconds
KINDS = {"plain": 54, "atomic": 32, "greedy": 4, "yielding": 7, "doomed": 3}


class Undo(Exception):
    """Rolls a transaction back."""


class Notes:
    """The producer's own log, one write a line."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.committed = 0
        self._sizes: dict[int, int] = {}

    def call(self, batch: int, runs: list[tuple[str, str, str, bool]]) -> None:
        """Just before an enqueue."""
        self._sizes[batch] = self._sizes.get(batch, 0) + len(runs)
        self._write(batch=batch, runs=runs)

    def fate(self, batch: int, fate: str) -> None:
        """After the end of its transaction."""
        self.committed += self._sizes.pop(batch, 0) if fate == COMMITTED else 0
        self._write(batch=batch, fate=fate)

    def _write(self, **words: Any) -> None:
        os.write(self._file, (json.dumps({"at": time.monotonic(), **words}) + "\n").encode())


class Producer:
    """Enqueues `runs` runs over about `seconds`; `heavy` is the share of runs that take their time."""

    def __init__(self, options: argparse.Namespace, notes: Notes) -> None:
        from tests.chaos.app import jobs

        self.jobs = jobs
        self.options = options
        self.notes = notes
        self.rng = random.Random(f"{options.seed} {options.name}")
        self.batch = 0
        self.made = 0
        self.poison = options.poison

    def run(self) -> None:
        """Produce until enough runs are committed."""
        start = time.monotonic()
        while self.notes.committed < self.options.runs:
            share = min(1.0, (time.monotonic() - start + WAVE) / self.options.seconds)
            while self.notes.committed < min(share * self.options.runs, self.options.runs):
                self.turn()
            time.sleep(WAVE)
        while self.poison:
            self.send_poison()

    def turn(self) -> None:
        """One transaction of some shape; the database may be down."""
        self.batch += 2  # the odd number after it belongs to a savepoint
        shapes = {self.one: 40, self.many: 15, self.several: 25, self.undone: 10, self.half: 10}
        shape = self.rng.choices(list(shapes), list(shapes.values()))[0]
        if self.poison and self.rng.random() < 0.02:
            shape = self.send_poison
        self.attempt(shape)

    def attempt(self, shape: Callable[[], None]) -> None:
        """Carry out a shape; an error of the database leaves its fate unknown."""
        try:
            shape()
        except (DatabaseError, InterfaceError):
            self.notes.fate(self.batch, UNKNOWN)
            connection.close()
            time.sleep(WAVE)

    def one(self) -> None:
        """One enqueue outside of a transaction."""
        self.enqueue(self.batch)
        self.notes.fate(self.batch, COMMITTED)

    def many(self) -> None:
        """Many runs of one job at once."""
        self.enqueue(self.batch, self.rng.randint(5, 60))
        self.notes.fate(self.batch, COMMITTED)

    def several(self) -> None:
        """Several enqueues in one transaction."""
        with transaction.atomic():
            self.some()
        self.notes.fate(self.batch, COMMITTED)

    def undone(self) -> None:
        """Several enqueues in a transaction that rolls back."""
        try:
            with transaction.atomic():
                self.some()
                raise Undo
        except Undo:
            self.notes.fate(self.batch, ROLLED_BACK)

    def half(self) -> None:
        """A savepoint that rolls back, in a transaction that commits."""
        with transaction.atomic():
            self.some()
            try:
                with transaction.atomic():
                    self.enqueue(self.batch + 1)
                    raise Undo
            except Undo:
                self.notes.fate(self.batch + 1, ROLLED_BACK)
            self.some()
        self.notes.fate(self.batch, COMMITTED)

    def some(self) -> None:
        """A few enqueues of the current batch."""
        for _ in range(self.rng.randint(1, 4)):
            self.enqueue(self.batch, self.rng.choice([1, 1, 1, 4]))

    def send_poison(self) -> None:
        """A run that kills its process."""
        self.poison -= 1
        call = self.call_of("poison", 0)
        self.notes.call(self.batch, [(call["token"], call["group"], "poison", False)])
        self.jobs.poison.enqueue(**call)
        self.notes.fate(self.batch, COMMITTED)

    def enqueue(self, batch: int, count: int = 1) -> None:
        """Enqueue `count` runs of one job."""
        kind = self.rng.choices(list(KINDS), list(KINDS.values()))[0]
        job, delayed, grouped = getattr(self.jobs, kind), self.rng.random() < 0.05, self.rng.random() > 0.03
        calls = [self.call_of(kind, self.duration(kind)) for _ in range(count)]
        if delayed:
            job = job.using(run_after=timezone.now() + timedelta(seconds=self.rng.uniform(0.2, 3)))
        if not grouped:
            job = job.using(group=None)
        named = [(call["token"], call["group"] if grouped else "", kind, delayed) for call in calls]
        self.notes.call(batch, named)
        if count == 1:
            job.enqueue(**calls[0])
        else:
            job.enqueue_many(calls)

    def call_of(self, kind: str, ms: float) -> dict[str, Any]:
        """Arguments of one call; few groups are large, many are small."""
        self.made += 1
        group = f"g{int(self.options.groups * self.rng.random() ** 2)}"
        fails = self.rng.choice([0] * 25 + [1, 1, 2]) if kind != "doomed" else 0
        return {"group": group, "token": f"{self.options.name}.{self.made}", "ms": ms, "fails": fails}

    def duration(self, kind: str) -> float:
        """Milliseconds: mostly none or few, some up to 300, few whole seconds; more of these hold the interpreter."""
        if kind == "greedy" and self.rng.random() < 4 * self.options.heavy:
            return self.rng.uniform(800, 3000)
        if self.rng.random() < self.options.heavy:
            return self.rng.uniform(800, 3000) if self.rng.random() < LONG else self.rng.uniform(50, 300)
        return self.rng.choice([0, 0, 0, 0, 1, 2, 5])


def arguments() -> Iterator[tuple[str, Any]]:
    """Name and type of each argument."""
    yield from (("name", str), ("notes", Path), ("seed", int), ("runs", int), ("seconds", float))
    yield from (("groups", int), ("heavy", float), ("poison", int))


def main() -> None:
    """Produce as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind in arguments():
        parser.add_argument(f"--{name}", type=kind, required=True)
    options = parser.parse_args()
    django.setup()
    Producer(options, Notes(options.notes)).run()


if __name__ == "__main__":
    main()
