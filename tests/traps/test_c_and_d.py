"""Order, and runs that are lost."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from groupjobs import control
from groupjobs.consumer import patience
from groupjobs.models import JobRun
from groupjobs.store import Store, store_for
from project.embedded import EmbeddedValkey
from tests.core.dying import dies, survives
from tests.core.ghosts import row
from tests.core.rows import QUEUE, attempts
from tests.core.serving import Watched, drain, ended, new_worker, pk_of, reopen, serve, serving, statuses, traces
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until
from tests.traps.leaks import recover_ghosts
from tests.traps.work import fails_at_the_gate

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

Journal = Callable[[], list[list[Any]]]


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


STOPS: dict[str, tuple[Callable[[int], object], Callable[[int], object]]] = {
    "hold": (lambda _: control.hold(QUEUE, "g"), lambda _: control.resume(QUEUE, "g")),
    "pause": (lambda _: control.hold(QUEUE, ""), lambda _: control.resume(QUEUE, "")),
    "delay": (
        lambda run: control.reschedule([run], in_seconds(3600)),
        lambda run: control.reschedule([run], None),
    ),
}


@pytest.mark.parametrize("stop", STOPS)
def test_c2_the_next_of_a_group_is_not_begun_against_a_hold_a_pause_or_a_delay(
    stop: str, store: Store, journal: Journal, gate: Path
) -> None:
    """It came while the head ran; the head's end must not start what is behind it."""
    first = jobs.waits.enqueue(label="A", gate=str(gate))
    second = jobs.note.enqueue(label="B")
    close, open_again = STOPS[stop]
    with Watched() as watched, serving(watched=watched):
        wait_until(journal)
        close(pk_of(second))
        gate.touch()
        wait_until(lambda: ended([first]))
        for _ in range(3):
            serve()
        assert (["B"] in journal(), statuses([second])) == (False, ["READY"])
        open_again(pk_of(second))
        wait_until(lambda: ended([second]))
    assert journal() == [["A", "begins"], ["A", "ends"], ["B"]]


def test_d2_a_failure_during_an_outage_of_redis_is_on_the_row_and_tried_again(
    short_ttl: None,
    store: Store,
    valkey: EmbeddedValkey,
    journal: Journal,
    gate: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = fails_at_the_gate.enqueue(label="A", gate=str(gate))
    behind = jobs.note.enqueue(label="B")
    with Watched() as watched, serving(watched=watched):
        wait_until(journal)
        valkey.kill()
        gate.touch()
        wait_until(lambda: row(run).status == "READY")
        failed = row(run)
        assert (failed.attempts, failed.failures, attempts(failed)) == (1, 1, [(failed.fence, "failed")])
        wait_until(lambda: "Redis does not answer" in caplog.text)
        tried = patience.redis_outage._until
        wait_until(lambda: patience.redis_outage._until > tried, what="it is tried again")
        valkey.start()
        reopen()
        wait_until(lambda: ended([run, behind]))
    assert journal() == [["A", "begins"], ["A", "begins"], ["A", "ends"], ["B"]]
    assert (row(run).status, row(run).attempts, row(run).failures, row(run).losses) == ("SUCCEEDED", 2, 1, 0)
    lines = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len([line for line in lines if line.getMessage().startswith("Redis does not answer")]) == 1


def test_d3_delayed_runs_survive_a_redis_that_restarts_empty(
    short_ttl: None, store: Store, valkey: EmbeddedValkey, journal: Journal
) -> None:
    due = jobs.note.using(run_after=in_seconds(0.3)).enqueue(label="due")
    backing_off = jobs.asks_again.using(group="r").enqueue(label="R", after=0.4)
    later = jobs.note.using(run_after=in_seconds(3600)).enqueue(label="later", group="l")
    serve()
    assert [words[0] for words in journal()] == ["R"]
    valkey.kill()
    shutil.rmtree(valkey.folder / "appendonlydir")
    valkey.start()
    assert store.client.dbsize() == 0
    reopen()
    drain(lambda: ended([due, backing_off]))
    assert sorted(words[0] for words in journal()) == ["R", "R", "due"]
    entry = store.snapshot([(pk_of(later), "l")]).entries[pk_of(later)]
    assert (entry.place, statuses([later])) == ("scheduled", ["READY"])
    assert 3_500_000 < entry.wait_ms <= 3_600_000


def test_d8_the_hook_fires_in_a_process_that_neither_enqueued_nor_ran_it(store: Store, journal: Journal) -> None:
    assert survives(partial(jobs.precious.enqueue, label="A"))
    worker = new_worker()

    def work() -> None:
        store_for(QUEUE, "beat").beat(worker, 1, {})
        serve(worker)

    dies(work, "before", "groupjobs.moves.settle")
    run = JobRun.objects.get()
    store.reap(worker=worker)
    assert ["report", run.pk, "too_many_losses"] not in journal()
    report = recover_ghosts()
    assert (report["abandoned"], report["reported"]) == (1, 1)
    assert journal() == [["A"], ["report", run.pk, "too_many_losses"]]
    assert row(run).abandon_reported_at is not None
    assert traces(store) == []
