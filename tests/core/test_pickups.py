"""How long runs wait to be picked up where short and long ones are mixed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from groupjobs import signals
from groupjobs.store import Store
from tests.core.serving import ended, pk_of, serving
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

PROMISED = 0.5  # seconds that a short run may wait behind a long one while another consumer is idle


@contextmanager
def begun() -> Iterator[dict[int, float]]:
    """When the handler of each run was about to start, on the machine's monotonic clock."""
    found: dict[int, float] = {}

    def note(run: Any, **_: Any) -> None:
        found[run.id] = time.monotonic()

    signals.run_begun.connect(note)
    try:
        yield found
    finally:
        signals.run_begun.disconnect(note)


@contextmanager
def stalls() -> Iterator[list[float]]:
    """By how many seconds threads of this process woke up too late: what a loaded machine adds to any wait."""
    late: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            before = time.monotonic()
            over.wait(0.02)
            late.append(max(0.0, time.monotonic() - before - 0.02))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield late
    finally:
        over.set()
        thread.join()


def test_no_short_run_waits_behind_a_long_one_while_another_consumer_is_idle(
    store: Store, batches: Callable[[], None], gate: Path
) -> None:
    """Two of forty runs are long, and one of three consumers is always free."""
    batches()
    calls = [(jobs.waits, {"label": f"long {n}", "gate": str(gate), "group": f"long {n}"}) for n in range(2)]
    with begun() as starts, stalls() as late, ExitStack() as consumers:
        long_runs = [job.enqueue(**arguments) for job, arguments in calls]
        short = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n}"} for n in range(38)])
        for _ in range(3):
            consumers.enter_context(serving())
        wait_until(lambda: all(pk_of(run) in starts for run in long_runs), pause=0.002)
        wait_until(lambda: ended(short), pause=0.005)
        assert not ended(long_runs)
        gate.touch()
        wait_until(ended)
    since = min(starts[pk_of(run)] for run in long_runs)
    slowest = max(starts[pk_of(run)] for run in short) - since
    # A late wake-up can hit each of the steps of a hand-over: the look of the guard, its commit, the next reservation.
    assert slowest < PROMISED + 3 * max(late)
