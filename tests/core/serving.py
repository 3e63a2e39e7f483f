"""Consumers in this process, on the real Redis and the test database."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

from django.db import connections
from redis.exceptions import RedisError

from groupjobs import consumer, recovery
from groupjobs.consumer.executions import Unwatched
from groupjobs.models import JobRun
from groupjobs.store import Store, store_for
from groupjobs.store.keys import line_name
from tests.core.rows import QUEUE
from tests.servers.waiting import wait_until

_incarnations = itertools.count()


def never() -> bool:
    """Nobody asks the consumer to stop."""
    return False


def new_worker() -> str:
    """A worker that has not been seen yet: it lives for one TTL, and longer only if somebody beats for it."""
    return f"here:{os.getpid()}:{next(_incarnations)}"


class Watched(Unwatched):
    """The executions of one worker, for which a thread beats as its watchdog would."""

    def __init__(self, pause: float = 0.1) -> None:
        self.worker = new_worker()
        self.listed: dict[str, int] = {}
        self.pause = pause
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._beat)

    def register(self, nonce: str, pid: int) -> None:
        """It serves from now on."""
        self.listed = {**self.listed, nonce: pid}

    def sign_off(self, nonce: str) -> None:
        """It has ended."""
        self.listed = {known: pid for known, pid in self.listed.items() if known != nonce}

    def _beat(self) -> None:
        while not self._end.wait(self.pause):
            with suppress(RedisError, OSError):
                store_for(QUEUE, "beat").beat(self.worker, 1, self.listed)

    def __enter__(self) -> Self:
        store_for(QUEUE, "beat").beat(self.worker, 1, {})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """No further beat: the whole host is gone."""
        self._end.set()
        self._thread.join()


def serve(
    worker: str = "", stop: Callable[[], bool] = never, queue: str = QUEUE, watched: Watched | None = None
) -> None:
    """One execution of the consumer task, by a worker of its own unless one is named or watched."""
    consumer.serve(queue, watched.worker if watched else worker or new_worker(), stop, watched)


def reopen() -> None:
    """Carry a rebuild to its end, which takes a TTL."""
    wait_until(lambda: recovery.rebuild(QUEUE), what="the queue is open")


def ended(runs: Sequence[JobRun | int | Any] = ()) -> bool:
    """Whether no run is live, or none of these."""
    live = JobRun.objects.filter(status__in=("READY", "RUNNING"))
    if runs:
        live = live.filter(pk__in=[pk_of(run) for run in runs])
    return not live.exists()


def pk_of(run: Any) -> int:
    """The id of a row, or of a result of enqueue."""
    return int(run if isinstance(run, int) else getattr(run, "pk", None) or run.id)


def drain(condition: Callable[[], Any] = ended, timeout: float = 15.0) -> None:
    """Serve again and again, as a worker's bells would have it, until the condition holds (no run is live)."""

    def served() -> Any:
        serve()
        return condition()

    wait_until(served, timeout)


@contextmanager
def serving(worker: str = "", watched: Watched | None = None) -> Iterator[threading.Thread]:
    """Another consumer that serves in a thread of its own, again and again, until the block ends."""
    stopped = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while not stopped.wait(0.01):
                serve(worker, stopped.is_set, watched=watched)
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield thread
    finally:
        stopped.set()
        thread.join(15)
    assert not thread.is_alive()
    if errors:
        raise errors[0]


def known(store: Store, runs: Sequence[Any]) -> set[int]:
    """The ids of those runs that Redis knows."""
    rows = JobRun.objects.filter(pk__in=[pk_of(run) for run in runs])
    asked = [(row.pk, line_name(row.group, row.pk)) for row in rows]
    return {run for start in range(0, len(asked), 500) for run in store.snapshot(asked[start : start + 500]).entries}


def traces(store: Store) -> list[str]:
    """The keys that belong to a single group or run: a queue with no work has none."""
    found = (key.decode(errors="replace") for key in store.client.scan_iter(f"{store.base}:*"))
    families = ("line:", "held:", "run:", "leases:", "scheduled", "ready", "later", "dead")
    return sorted(key for key in found if key.removeprefix(f"{store.base}:").startswith(families))


def statuses(runs: Sequence[Any]) -> list[str]:
    """The statuses of these runs, in their order."""
    found = dict(JobRun.objects.filter(pk__in=[pk_of(run) for run in runs]).values_list("id", "status"))
    return [found[pk_of(run)] for run in runs]
