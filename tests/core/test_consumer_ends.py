"""How runs end: results, failures, retries, interrupts, cancels, and what becomes of the rest of the group."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from groupjobs import control, ledger, moves, signals
from groupjobs.store import Store
from tests.core.ghosts import row
from tests.core.rows import QUEUE, attempts, change
from tests.core.serving import drain, ended, pk_of, serve, serving, statuses, traces
from tests.core.told import labels
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
Journal = Callable[[], list[list[Any]]]
Batches = Callable[[], None]


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


# --- how runs end


def test_a_result_and_a_coroutine(store: Store, journal: Journal) -> None:
    value = {"a": [1, 2.5, None, True, "é☃"]}
    results: list[Any] = [jobs.echo.enqueue(value), jobs.anote.enqueue(label="async")]
    drain()
    assert [row(result).result for result in results] == [value, "async"]
    assert [row(result).status for result in results] == ["SUCCEEDED"] * 2
    for result in results:
        result.refresh()
    assert results[0].return_value == value


def test_a_failure_is_on_the_row_and_in_the_log(
    store: Store, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    result = jobs.fails.enqueue(label="A")
    drain()
    found = row(result)
    assert (found.status, found.attempts, found.failures, found.losses) == ("FAILED", 1, 1, 0)
    assert isinstance(found.error, dict)
    assert (found.error["class"], found.error["message"]) == ("builtins.ValueError", "A does not work")
    assert "in fails" in found.error["traceback"]
    [log] = found.attempt_log.all()
    assert (log.outcome, log.error_class, log.message) == ("failed", "builtins.ValueError", "A does not work")
    assert (log.fence, log.worker) == (found.fence, found.worker)
    [record] = [
        record for record in caplog.records if (record.name, record.levelno) == ("groupjobs.runs", logging.ERROR)
    ]
    assert record.exc_info is not None
    assert record.exc_info[0] is ValueError


def test_only_errors_of_retry_on_are_tried_again(store: Store, journal: Journal) -> None:
    key, value = jobs.picky.enqueue(label="K", error="key"), jobs.picky.enqueue(label="V", error="value")
    drain()
    assert Counter(labels(journal)) == {"K": 5, "V": 1}
    assert [(row(run).status, row(run).failures) for run in (key, value)] == [("FAILED", 5), ("FAILED", 1)]
    assert len(attempts(row(key))) == 5


def test_retry_after_takes_its_own_pause(store: Store, journal: Journal) -> None:
    before = time.monotonic()
    result = jobs.asks_again.enqueue(label="A", after=0.3)
    drain()
    assert time.monotonic() - before >= 0.3
    assert labels(journal) == ["A", "A"]
    assert (row(result).status, row(result).failures) == ("SUCCEEDED", 1)


def test_retry_without_a_try_left_is_a_failure(store: Store, journal: Journal) -> None:
    result = jobs.asks_again.using(max_attempts=1).enqueue(label="A", after=0)
    drain()
    assert labels(journal) == ["A"]
    assert row(result).status == "FAILED"


def test_cancel_ends_the_run_and_its_group_goes_on(store: Store, journal: Journal) -> None:
    result = jobs.gives_up.using(group="g").enqueue(label="A", reason="é" * 300)
    jobs.note.enqueue(label="B")
    drain()
    assert labels(journal) == ["A", "B"]
    assert (row(result).status, row(result).reason) == ("CANCELLED", "é" * 255)
    [log] = row(result).attempt_log.all()
    assert (log.outcome, log.fence, log.worker) == ("cancelled", row(result).fence, row(result).worker)


def test_hold_gives_the_run_back_and_stops_its_group(store: Store, batches: Batches, journal: Journal) -> None:
    batches()
    held = jobs.wants_a_person.enqueue(label="A")
    behind = jobs.note.enqueue(label="B")
    jobs.note.enqueue(label="X", group="x")
    drain(lambda: ["X"] in journal() and row(held).status == "READY")
    serve()
    assert statuses([held, behind]) == ["READY", "READY"]
    assert (row(held).attempts, row(held).failures, row(held).losses) == (0, 0, 0)
    group = ledger.group_row(QUEUE, "g")
    assert group is not None
    assert (group.held, group.reason) == (True, "look")
    assert store.snapshot([(pk_of(held), "g")]).groups["g"].held_flag
    control.cancel([pk_of(held)])
    serve()
    assert ["B"] not in journal()
    control.resume(QUEUE, "g")
    drain()
    assert labels(journal).count("A") == 1
    assert ["B"] in journal()


def test_hold_needs_a_group(store: Store, journal: Journal) -> None:
    result = jobs.wants_a_person.using(group=None).enqueue(label="A")
    drain()
    assert row(result).status == "FAILED"
    assert "no group" in (row(result).error or {})["message"]


@pytest.mark.parametrize(
    ("after_failure", "rest"), [("continue", "SUCCEEDED"), ("hold", "READY"), ("cancel", "CANCELLED")]
)
def test_c4_after_failure(after_failure: Any, rest: str, store: Store, batches: Batches, journal: Journal) -> None:
    batches()
    head = jobs.fails.using(group="g", after_failure=after_failure).enqueue(label="A")
    others = jobs.note.enqueue_many([{"label": "B"}] * 5)
    drain(lambda: row(head).status == "FAILED" and set(statuses(others)) == {rest})
    serve()
    assert statuses(others) == [rest] * 5
    assert labels(journal).count("B") == (5 if rest == "SUCCEEDED" else 0)
    later = jobs.note.enqueue(label="C")
    if rest == "READY":
        serve()
        assert row(later).status == "READY"
        control.resume(QUEUE, "g")
    drain()
    assert labels(journal)[-1] == "C"
    assert row(later).status == "SUCCEEDED"


def test_the_rest_is_cancelled_and_a_person_s_hold_stays(store: Store, journal: Journal) -> None:
    jobs.fails.using(group="g", after_failure="cancel").enqueue(label="A")
    rest = jobs.note.enqueue_many([{"label": "B"}] * 2)

    def hold(**_: Any) -> None:
        control.hold(QUEUE, "g", "look", "a person")

    signals.run_begun.connect(hold)
    try:
        drain(lambda: ended(rest))
    finally:
        signals.run_begun.disconnect(hold)
    assert statuses(rest) == ["CANCELLED"] * 2
    group = ledger.group_row(QUEUE, "g")
    assert group is not None
    assert (group.held, group.reason) == (True, "look")


def test_only_what_waited_is_cancelled_with_a_failure(store: Store, journal: Journal) -> None:
    failed = jobs.fails.using(group="g", after_failure="cancel").enqueue(label="A")
    before = jobs.note.enqueue(label="B")
    change(row(failed), status="FAILED")
    after = jobs.note.enqueue(label="C")
    change(row(after), enqueued_at=in_seconds(1))  # SQLite tells milliseconds apart, no less
    assert moves.cancel_line(QUEUE, "g", pk_of(failed)) == 1
    drain()
    assert statuses([before, after]) == ["CANCELLED", "SUCCEEDED"]


def test_a_run_past_its_expiry_never_starts(store: Store, journal: Journal) -> None:
    late = jobs.note.using(expires=3600).enqueue(label="A")
    change(row(late), expires_at=in_seconds(-1))
    jobs.note.using(expires=3600).enqueue(label="B")
    drain()
    assert labels(journal) == ["B"]
    assert (row(late).status, row(late).reason) == ("CANCELLED", "expired")


# --- cancel


def test_a_waiting_run_that_was_cancelled_never_starts(store: Store, journal: Journal) -> None:
    first, second, third = jobs.note.enqueue_many([{"label": label} for label in "ABC"])
    control.cancel([pk_of(second)])
    drain()
    assert labels(journal) == ["A", "C"]
    assert statuses([first, second, third]) == ["SUCCEEDED", "CANCELLED", "SUCCEEDED"]


def test_a_head_that_backs_off_may_be_cancelled_and_frees_its_group(store: Store, journal: Journal) -> None:
    head = jobs.asks_again.using(group="g").enqueue(label="A", after=60)
    jobs.note.enqueue(label="B")
    drain(lambda: row(head).failures == 1)
    control.cancel([pk_of(head)])
    drain()
    assert labels(journal) == ["A", "B"]
    assert row(head).status == "CANCELLED"
    assert traces(store) == []


def test_i1_a_cancelled_row_that_redis_still_serves_never_starts(store: Store, journal: Journal) -> None:
    """The row was cancelled, and the process died before it told Redis."""
    first = jobs.note.enqueue(label="A")
    jobs.note.enqueue(label="B")
    assert ledger.transit("cancel", pk_of(first), "READY", 0, reason="requested")
    drain()
    assert labels(journal) == ["B"]
    assert traces(store) == []


def test_a_running_handler_learns_of_its_cancel(store: Store, journal: Journal, gate: Path) -> None:
    result = jobs.obeys.using(group="g").enqueue(label="A", gate=str(gate))
    jobs.note.enqueue(label="B")
    with serving():
        wait_until(journal)
        control.cancel([pk_of(result)])
        wait_until(ended, timeout=5)
    assert (row(result).status, row(result).reason) == ("CANCELLED", "requested")
    assert labels(journal) == ["A", "B"]
