"""States that a crash may leave, built directly in Redis and rows."""

from __future__ import annotations

import io
import json
from typing import Any

from django.core.management import call_command

from groupjobs.store import Consumer, Store
from tests.core.ghosts import begin, key, live, reserve, someone
from tests.jobsapp import jobs


def recover_ghosts(*options: str) -> dict[str, Any]:
    """What `manage.py recover_ghosts --json` says."""
    said = io.StringIO()
    call_command("recover_ghosts", "--json", *options, stdout=said)
    report: dict[str, Any] = json.loads(said.getvalue())
    return report


def found(report: dict[str, Any]) -> dict[str, int]:
    """What a report says was done."""
    looked = ("examined", "rung", "reported")
    return {name: count for name, count in report.items() if isinstance(count, int) and count and name not in looked
            and name != "dry_run"}  # fmt: skip


def two() -> list[Any]:
    """A, and B behind it."""
    return jobs.note.enqueue_many([{"label": label} for label in "AB"])


def held(store: Store, begun: bool = True) -> Consumer:
    """The head of the only group is with a consumer of a worker that beats."""
    consumer = someone()
    live(store, consumer)
    reservations = reserve(store, consumer, 1)
    assert len(reservations) == 1
    if begun:
        begin(consumer, reservations)
    return consumer


def fall_silent(store: Store, consumer: Consumer) -> None:
    """Its worker's last beat is longer ago than any TTL."""
    store.client.zadd(key(store, "workers"), {consumer.worker: -1e9})
