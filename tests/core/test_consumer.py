"""A consumer in this process, against the real Redis and database: order, retries, give-backs, interrupts."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import override_settings

from groupjobs import control, job, ledger, moves, signals
from groupjobs.consumer import guard
from groupjobs.consumer import serving as serving_module
from groupjobs.models import JobProgress, JobRun
from groupjobs.store import Store
from tests.core.rows import QUEUE, again, attempts, change, values
from tests.core.serving import Watched, drain, ended, new_worker, pk_of, serve, serving, statuses, traces
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

Journal = Callable[[], list[list[Any]]]
Batches = Callable[[], None]


def row(result: Any) -> JobRun:
    return again(pk_of(result))


def labels(journal: Journal) -> list[Any]:
    return [words[0] for words in journal()]


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


# --- order


def test_c1_a_failed_head_runs_again_before_the_rest_of_its_group(
    store: Store, batches: Batches, journal: Journal
) -> None:
    batches()
    first = jobs.flaky.using(group="g").enqueue(label="A")
    rest = jobs.note.enqueue_many([{"label": label} for label in "BC"])
    drain()
    assert labels(journal) == ["A", "A", "B", "C"]
    head = row(first)
    assert (head.status, head.attempts, head.failures, head.losses, head.result) == ("SUCCEEDED", 2, 1, 0, "A")
    assert [(row(run).attempts, row(run).attempt_log.count()) for run in rest] == [(1, 0), (1, 0)]
    assert [outcome for _, outcome in attempts(head)] == ["failed"]
    assert traces(store) == []


def test_c1_batch_mates_behind_a_failed_head_are_given_back(store: Store, batches: Batches, journal: Journal) -> None:
    batches()
    head = jobs.asks_again.using(group="g").enqueue(label="A", after=60)
    rest = jobs.note.enqueue_many([{"label": label} for label in "BC"])
    others = jobs.note.enqueue_many([{"label": f"x{number}", "group": f"x{number}"} for number in range(5)])
    drain(lambda: ended(others))
    serve()
    assert [label for label in labels(journal) if label in ("A", "B", "C")] == ["A"]
    assert statuses([head, *rest]) == ["READY"] * 3
    assert [(row(run).attempts, row(run).failures, row(run).losses) for run in rest] == [(0, 0, 0)] * 2
    state = store.snapshot([(pk_of(head), "g")]).groups["g"]
    assert (state.ready, state.waiting, state.held) == (False, 3, ())
    assert state.later_ms is not None
    assert 50_000 < state.later_ms <= 60_000


def test_a_run_of_a_failing_group_that_comes_later_does_not_overtake(store: Store, journal: Journal) -> None:
    head = jobs.flaky.using(group="g").enqueue(label="A", failures=3)
    serve()
    jobs.note.enqueue(label="B")
    jobs.note.using(priority=100).enqueue(label="C")
    drain()
    assert labels(journal) == ["A", "A", "A", "A", "B", "C"]
    assert row(head).attempts == 4


def test_a_retry_that_yields_lets_the_rest_of_its_group_pass(store: Store, journal: Journal) -> None:
    jobs.asks_again.using(group="g", on_retry="yield").enqueue(label="A", after=0.4)
    jobs.note.enqueue_many([{"label": label} for label in "BC"])
    drain()
    assert labels(journal) == ["A", "B", "C", "A"]


def test_order_is_the_place_in_the_line(store: Store, journal: Journal) -> None:
    for label, order in (("c", 0), ("e", 2**53), ("a", -(2**53)), ("b", -1), ("d", 2**53 - 1)):
        jobs.flaky.using(group="g", order=order).enqueue(label=label)
    drain()
    assert labels(journal) == ["a", "a", "b", "b", "c", "c", "d", "d", "e", "e"]


def test_a_scheduled_run_does_not_block_its_group(store: Store, journal: Journal) -> None:
    jobs.note.using(run_after=in_seconds(0.5)).enqueue(label="late")
    jobs.note.enqueue(label="early")
    drain()
    assert labels(journal) == ["early", "late"]


def test_many_groups_keep_each_its_own_order(store: Store, journal: Journal) -> None:
    calls = [{"label": f"{group}:{number}", "group": f"g{group}"} for number in range(20) for group in range(15)]
    jobs.note.enqueue_many(calls)
    with serving():
        drain()
    said = [str(label).split(":") for label in labels(journal)]
    assert len(said) == 300
    for group in range(15):
        assert [int(number) for of, number in said if of == str(group)] == list(range(20))
    assert traces(store) == []


def test_b4_two_consumers_never_serve_one_group_at_once(store: Store, journal: Journal, gate: Path) -> None:
    """While A's first run waits, nobody serves A; the others go on."""
    jobs.waits.enqueue(label="A1", gate=str(gate), group="A")
    jobs.note.enqueue(label="A2", group="A")
    with serving():
        wait_until(lambda: ["A1", "begins"] in journal())
        others = jobs.note.enqueue_many([{"label": f"b{n}", "group": "B"} for n in range(3)])
        drain(lambda: ended(others))
        serve()
        assert ["A2"] not in journal()
        gate.touch()
        wait_until(ended)
    said = journal()
    assert said.index(["A1", "ends"]) < said.index(["A2"])


def test_b4_a_group_concurrency_of_two_is_two(store: Store, journal: Journal, gate: Path) -> None:
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "QUEUES": {QUEUE: {"group_concurrency": 2}}}):
        runs = jobs.waits.enqueue_many([{"label": f"A{n}", "gate": str(gate)} for n in range(4)])
        with serving(), serving(), serving():
            wait_until(lambda: len(journal()) == 2, what="two of them run")
            serve()
            serve()
            assert len(journal()) == 2
            assert sorted(statuses(runs)) == ["READY", "READY", "RUNNING", "RUNNING"]
            gate.touch()
            wait_until(ended)
    assert [row(run).losses for run in runs] == [0] * 4
    open_now, most = 0, 0
    for _, word in journal():
        open_now += 1 if word == "begins" else -1
        most = max(most, open_now)
    assert most == 2


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


# --- context


def test_context(store: Store, journal: Journal) -> None:
    result = jobs.shows_context.using(group="g").enqueue(label="A")
    drain()
    assert row(result).result == [1, row(result).fence, pk_of(result), "g", False]


def test_fences_only_grow_and_attempts_count_from_one(store: Store, journal: Journal) -> None:
    result = jobs.flaky.enqueue(label="A", failures=4)
    drain()
    fences = [fence for fence, _ in attempts(row(result))] + [row(result).fence]
    assert len(fences) == 5
    assert fences == sorted(set(fences))


def test_progress_is_written_while_the_handler_runs(store: Store, journal: Journal, gate: Path) -> None:
    result = jobs.counts.enqueue(steps=4, gate=str(gate))

    def progress() -> JobProgress:
        return JobProgress.objects.get(run_id=pk_of(result))

    with serving():
        wait_until(lambda: progress().message == "start")
        found = progress()
        assert (found.done, found.total, found.phase) == (0, 4, "counting")
        assert found.updated_at is not None
        gate.touch()
        wait_until(ended)
    found = progress()
    assert (found.done, found.total, found.message, found.percent) == (4, 4, "é☃", 100.0)


# --- long runs, stops, and the guard


def test_a_long_run_gives_the_rest_of_its_batch_back_at_once(
    store: Store, batches: Batches, journal: Journal, gate: Path
) -> None:
    assert guard.LOOK + guard.LONG < 0.4, "seconds"
    batches()
    long_run = jobs.waits.enqueue(label="long", gate=str(gate), group="long")
    behind = jobs.note.enqueue(label="behind", group="long")
    others = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n}"} for n in range(20)])
    with serving():
        wait_until(lambda: ["long", "begins"] in journal(), pause=0.002)
        mine = JobRun.objects.filter(pk__in=[pk_of(run) for run in others], status="RUNNING")
        waited = mine.count()
        wait_until(lambda: not mine.exists(), pause=0.005, what="the rest is given back while the long run goes on")
        assert waited > 0
        drain(lambda: ended(others), timeout=5)
        assert statuses([long_run, behind]) == ["RUNNING", "READY"]
        gate.touch()
        wait_until(ended)
    assert [row(run).attempts for run in others] == [1] * 20
    assert {row(run).losses for run in (*others, long_run, behind)} == {0}
    assert labels(journal)[-1] == "behind"


def test_i3_a_consumer_that_is_asked_to_stop_gives_back_what_it_has_not_started(
    store: Store, batches: Batches, journal: Journal
) -> None:
    batches()
    runs = jobs.note.enqueue_many([{"label": str(n), "group": f"x{n}"} for n in range(40)])
    serve(stop=lambda: len(journal()) >= 3)
    assert len(journal()) == 3
    assert Counter(statuses(runs)) == {"SUCCEEDED": 3, "READY": 37}
    assert {(row(run).losses, row(run).failures) for run in runs} == {(0, 0)}
    assert sum(row(run).attempts for run in runs) == 3
    drain()
    assert sorted(int(label) for label in labels(journal)) == list(range(40))


def test_a_consumer_ends_after_its_time_and_leaves_the_rest_ready(store: Store, journal: Journal) -> None:
    runs = jobs.note.enqueue_many([{"label": str(n)} for n in range(5000)])
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "CONSUMER_SECONDS": 0.3}):
        serve()
    done = len(journal())
    assert 0 < done < 5000
    assert Counter(statuses(runs)) == {"SUCCEEDED": done, "READY": 5000 - done}
    serve(stop=lambda: len(journal()) >= done + 10)
    assert labels(journal) == [str(n) for n in range(done + 10)]


def test_a_give_back_that_failed_is_made_up_for(
    store: Store, batches: Batches, journal: Journal, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away just when the guard gives the rest back, until the long run has ended."""
    batches()
    jobs.waits.enqueue(label="long", gate=str(gate), group="long")
    others = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n}"} for n in range(100)])
    tried: list[int] = []
    real = ledger.settle

    def failing(settlements: Any) -> Any:
        back = any(settlement.transition == "give_back" for settlement in settlements)
        if back and threading.current_thread().name == "groupjobs-guard":
            tried.append(1)
            gate.touch()
            raise OperationalError("the database is away")
        return real(settlements)

    monkeypatch.setattr(ledger, "settle", failing)
    calls = counted_steps(monkeypatch)
    worker = new_worker()
    store.beat(worker, 1, {})
    serve(worker)
    assert tried
    assert statuses(others) == ["SUCCEEDED"] * 100
    assert sorted(labels(journal)[2:]) == sorted(f"x{n}" for n in range(100))
    assert {row(run).losses for run in others} == {0}
    assert len(calls) < 100


# --- leases that are lost


def test_b2_a_consumer_whose_worker_was_taken_for_dead_changes_nothing_more(
    store: Store, journal: Journal, gate: Path
) -> None:
    result = jobs.first_waits.enqueue(label="A", gate=str(gate))
    zombie = new_worker()
    with serving(zombie):
        wait_until(lambda: ["A", "first"] in journal())
        old = row(result).fence
        store.reap(worker=zombie)
        drain(lambda: ended([result]))
        won = row(result)
        assert (won.status, won.result, won.losses) == ("SUCCEEDED", "again", 1)
        assert won.fence > old
        before = values(won)
        gate.touch()
    assert values(won) == before
    assert won.attempts == 2
    assert attempts(won) == [(old, "lost")]
    assert traces(store) == []


def test_a_handler_whose_lease_is_lost_is_interrupted(store: Store, journal: Journal, gate: Path) -> None:
    result = jobs.first_waits.enqueue(label="A", gate=str(gate))
    zombie = new_worker()
    with serving(zombie) as thread:
        wait_until(lambda: ["A", "first"] in journal())
        store.reap(worker=zombie)
        drain(lambda: ended([result]))
        wait_until(lambda: not _waits(thread, journal), timeout=5, what="LeaseLost was raised at the gate")
    assert ["A", "first ends"] not in journal()
    assert row(result).result == "again"


def _waits(thread: Any, journal: Journal) -> bool:
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        if frame.f_code.co_name == "wait_at":
            return True
        frame = frame.f_back
    return False


def test_nothing_starts_that_was_lost_in_the_meantime(
    store: Store, batches: Batches, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the guard's help, a lease that was not confirmed for a while is confirmed before its handler starts."""
    monkeypatch.setattr(guard, "LONG", 1e9)
    monkeypatch.setattr(guard, "KEEP", 1e9)
    batches()
    jobs.loses_its_worker.using(group="first").enqueue(label="loses")
    runs = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n}"} for n in range(20)])
    serve()
    assert labels(journal).count("loses") == 1
    assert [label for label in labels(journal) if label != "loses"] == []
    assert not set(statuses(runs)) & {"SUCCEEDED", "FAILED"}
    monkeypatch.undo()
    JobRun.objects.filter(job=jobs.loses_its_worker.job_name).update(job=jobs.note.job_name)
    drain()
    assert {row(run).losses for run in runs} == {0}
    assert Counter(statuses(runs)) == {"SUCCEEDED": 20}


@job(group="{group}", soft_time_limit=0.3)
def stops_in_a_query(group: str = "g") -> None:
    """Where an interrupt may come: the query is sent, its answer is not read yet."""
    connection.ensure_connection()
    connection.connection.pgconn.send_query(b"select 1")
    while True:
        time.sleep(0.005)


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.usefixtures("postgres_server")
def test_an_interrupt_in_the_middle_of_a_query_costs_a_connection_and_no_outcome(
    store: Store, journal: Journal, atomic: bool
) -> None:
    before = jobs.note.enqueue(label="A", group="g")
    interrupted = stops_in_a_query.using(atomic=atomic).enqueue()
    after = jobs.note.enqueue(label="B", group="g")
    serve()
    assert statuses([before, interrupted, after]) == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert attempts(row(interrupted)) == [(row(interrupted).fence, "timed_out")]
    assert labels(journal) == ["A", "B"]


def test_a_run_that_was_lost_before_it_began_costs_nothing(
    store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker was taken for dead while the consumer waited for the database."""
    worker, load = new_worker(), ledger.load

    def late(queue: str, runs: Sequence[int]) -> Any:
        store.reap(worker=worker)
        return load(queue, runs)

    monkeypatch.setattr(ledger, "load", late)
    monkeypatch.setattr(serving_module, "UNCONFIRMED", -1.0)
    result = jobs.note.using(max_losses=0).enqueue(label="A")
    serve(worker)
    assert journal() == []
    assert (row(result).status, row(result).losses) == ("READY", 0)
    monkeypatch.undo()
    drain()
    assert (row(result).status, row(result).losses) == ("SUCCEEDED", 0)
    assert attempts(row(result)) == []


# --- what it costs


def counted_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    real = Store.call

    def call(self: Store, verb: str, *args: Any) -> Any:
        calls.append(verb)
        return real(self, verb, *args)

    monkeypatch.setattr(Store, "call", call)
    return calls


def test_script_calls_and_commits_are_few(store: Store, batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 no-op runs in 200 groups on one consumer, on however slow a machine."""
    batches()
    runs = [run for group in range(200) for run in jobs.noop.using(group=f"g{group}").enqueue_many([((), {})] * 10)]
    calls = counted_steps(monkeypatch)
    commits: list[str] = []
    real_commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]

    def commit(self: BaseDatabaseWrapper) -> None:
        commits.append("commit")
        real_commit(self)

    def execute(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not context["connection"].in_atomic_block:
            commits.append(sql)
        return run(sql, params, many, context)

    monkeypatch.setattr(BaseDatabaseWrapper, "_commit", commit)
    with Watched() as watched, connection.execute_wrapper(execute):
        serve(watched=watched)
    assert Counter(statuses(runs)) == {"SUCCEEDED": 2000}
    assert calls.count("step") <= 60
    assert len([call for call in calls if call != "beat"]) <= 60
    assert len(commits) <= 200
