"""Rows as tests need them: built directly, read whole, and raced for on connections of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db import connection, connections
from django.db.models.functions import Now

from groupjobs import ledger
from groupjobs.ledger import Attempt, Batch, Beginning, Settlement
from groupjobs.lifecycle import TERMINAL
from groupjobs.models import JobRun

T = TypeVar("T")

QUEUE = "default"
NOOP = "tests.jobsapp.jobs.noop"
OLD = "here:1:old"  # a worker that is no more


def new(count: int = 1, group: str = "g", job: str = NOOP, **options: Any) -> list[JobRun]:
    """Committed READY rows that nobody has told Redis of."""
    return ledger.insert(Batch(QUEUE, job, [(group, "[]", "{}", None)] * count, **options))


def change(run: JobRun, **columns: Any) -> JobRun:
    """The row after these columns were set by force, as a fault or an older process left it."""
    if columns.get("status") in TERMINAL:
        columns = {"finished_at": Now(), "dedup_key": None, **columns}
    assert JobRun.objects.filter(pk=run.pk).update(**columns) == 1
    return again(run)


def running(
    fence: int = 40, *, alone: bool = False, worker: str = OLD, consumer: str = "old", **columns: Any
) -> JobRun:
    """One row that says RUNNING under this fence."""
    [run] = new(group=columns.pop("group", "g"))
    columns = {"last_attempted_at": Now(), "started_at": Now(), **columns}
    return change(run, status="RUNNING", fence=fence, alone=alone, worker=worker, consumer=consumer, **columns)


def again(run: JobRun | int) -> JobRun:
    """The row as it stands now."""
    return JobRun.objects.get(pk=run if isinstance(run, int) else run.pk)


def values(run: JobRun | int) -> dict[str, Any]:
    """Every column of the row as it stands now."""
    return dict(JobRun.objects.filter(pk=run if isinstance(run, int) else run.pk).values().get())


def beginning(run: JobRun, fence: int, consumer: str = "new", **options: Any) -> Beginning:
    """What a consumer that loaded this row now would ask for."""
    row = ledger.load(run.queue, [run.pk])[run.pk]
    return Beginning(row, fence, options.pop("alone", False), "here:2:new", consumer, **options)


def attempts(run: JobRun) -> list[tuple[int, str]]:
    """The run's attempt log: (fence, outcome)."""
    return list(run.attempt_log.order_by("fence").values_list("fence", "outcome"))


def race(*calls: Callable[[], T]) -> list[T]:
    """The answers of these calls, made at one moment by threads with connections of their own; errors are raised."""
    start = threading.Barrier(len(calls))
    answers: dict[int, T] = {}
    errors: list[BaseException] = []

    def run(index: int, call: Callable[[], T]) -> None:
        try:
            for alias in connections:
                connections[alias].ensure_connection()
            start.wait(10)
            answers[index] = call()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
    return [answers[index] for index in range(len(calls))]


def aside(call: Callable[[], T]) -> T:
    """The answer of a call made by another thread, with a connection of its own."""
    return race(call)[0]


def settle(settlements: Sequence[ledger.Settlement]) -> dict[int, ledger.Answer]:
    """Settle in one commit."""
    with ledger.one_commit():
        return ledger.settle(settlements)


def reroute(folder: str) -> None:
    """From now on this thread talks to PostgreSQL through the socket in this folder."""
    connection.close()
    connection.settings_dict = {**connection.settings_dict, "HOST": folder}


def outcomes(run: JobRun, fence: int = 40) -> dict[str, Settlement]:
    log = Attempt(run.pk, fence, "failed", error_class="builtins.ValueError", message="no")
    return {
        "succeed": Settlement(run.pk, fence, "succeed", result='{"a": 1}'),
        "fail": Settlement(run.pk, fence, "fail", error={"class": "E"}, failed=True, attempt=log),
        "retry": Settlement(run.pk, fence, "retry", delay=30, failed=True, attempt=log),
        "cancel": Settlement(run.pk, fence, "cancel", reason="no more"),
        "abandon": Settlement(run.pk, fence, "abandon", reason="poison"),
        "give_back": Settlement(run.pk, fence, "give_back", tried=False),
    }
