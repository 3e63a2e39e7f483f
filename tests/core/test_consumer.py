"""A consumer in this process, against the real Redis and database: order, contexts, and what it costs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import override_settings

from groupjobs import conf, moves
from groupjobs.models import JobProgress
from groupjobs.store import Store
from tests.core.ghosts import row
from tests.core.rows import QUEUE, attempts
from tests.core.serving import Watched, drain, ended, pk_of, serve, serving, statuses, traces
from tests.core.told import labels
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
Journal = Callable[[], list[list[Any]]]
Batches = Callable[[], None]


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


def counted_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    real = Store.call

    def call(self: Store, verb: str, *args: Any) -> Any:
        calls.append(verb)
        return real(self, verb, *args)

    monkeypatch.setattr(Store, "call", call)
    return calls


# --- what it costs


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


def test_slow_commits_make_batches_no_smaller(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that takes longer than the interval is what batches are for."""
    settle, step, wants = moves.settle, Store.step, []

    def slow(*arguments: Any) -> Any:
        time.sleep(2 * conf.current().commit_interval)
        return settle(*arguments)

    def seen(self: Store, consumer: Any, number: int, want: int, *rest: Any) -> Any:
        wants.append(want)
        return step(self, consumer, number, want, *rest)

    monkeypatch.setattr(moves, "settle", slow)
    monkeypatch.setattr(Store, "step", seen)
    jobs.noop.enqueue_many([((), {})] * 400)
    drain()
    assert max(wants) >= 16, wants
