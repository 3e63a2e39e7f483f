"""Every signal of runs has a sender, which sends it once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import DataError, connection
from django.dispatch import Signal

from groupjobs import compat, control, recovery, signals
from groupjobs.consumer import announcing
from groupjobs.models import JobRun
from groupjobs.store import Consumer, Lease, Store
from groupjobs.store.keys import line_name
from project.embedded import EmbeddedValkey
from tests.core.hearing import ends
from tests.core.rows import again, change, running
from tests.core.serving import drain, pk_of, serve, serving, statuses
from tests.jobsapp.jobs import fails, flaky, gives_up, nests, note, waits
from tests.semantics.jobs import fails_at_the_gate
from tests.servers.waiting import wait_until

Heard = list[dict[str, Any]]
Said = Callable[[], list[list[Any]]]


@contextmanager
def heard(signal: Signal) -> Iterator[Heard]:
    said: Heard = []

    def hear(sender: Any, **facts: Any) -> None:
        told = {name: value for name, value in facts.items() if name not in ("signal", "group", "fence", "attempt")}
        said.append({"sender": sender, **told})

    signal.connect(hear)
    try:
        yield said
    finally:
        signal.disconnect(hear)


def reaped(store: Store, run: JobRun, overdue: bool = False) -> None:
    """Its consumer is dead, and its lease back in line."""
    consumer = Consumer("n1", "here:1:x", 1)
    store.step(consumer, 1, 0)
    store.keep(consumer, 1, [Lease(run.pk, line_name(run.group, run.pk), 0, run.life, run.fence, int(run.alone))])
    store.reap(worker=consumer.worker, consumer="n1", overdue=[(run.pk, run.fence)] if overdue else [])


def test_results_for_signals_are_read_again_on_a_new_connection(store: Store, journal: Any) -> None:
    def breaks(sender: Any, **_: Any) -> None:
        connection.connection.close()

    signals.run_succeeded.connect(breaks)
    try:
        with heard(compat.task_finished) as said:
            runs = note.using(group="g").enqueue_many([{"label": "a"}, {"label": "b"}])
            serve()
    finally:
        signals.run_succeeded.disconnect(breaks)
    assert [told["task_result"].id for told in said] == [run.id for run in runs]


def test_results_that_cannot_be_read_hold_nobody_up(
    store: Store, journal: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unreadable(runs: Any) -> Any:
        raise DataError("timestamp too large")

    monkeypatch.setattr(announcing, "results_of_runs", unreadable)
    run = note.enqueue("a")
    with heard(compat.task_started) as started, heard(compat.task_finished) as finished:
        serve()
    assert statuses([run]) == ["SUCCEEDED"]
    assert (started, finished) == ([], [])
    assert "their results cannot be read" in caplog.text


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("finder", ["consumer", "recovery"])
def test_a_loss_is_announced_once(store: Store, finder: str, alone: bool) -> None:
    run = running(alone=alone, worker="dead:1:x")
    with heard(signals.run_lost) as said:
        reaped(store, run)
        if finder == "recovery":
            recovery.recover()
        drain()
        recovery.recover()
    facts = {"run": run.pk, "queue": "default", "job": run.job, "worker": "dead:1:x", "counted": alone}
    assert said == [{"sender": JobRun, **facts}]


def test_a_loss_too_many_is_announced_as_well(store: Store) -> None:
    run = running(alone=True, max_losses=0)
    with heard(signals.run_lost) as lost, heard(signals.run_abandoned) as abandoned:
        recovery.recover()
    assert [(facts["run"], facts["counted"]) for facts in lost] == [(run.pk, True)]
    assert [facts["run"].pk for facts in abandoned] == [run.pk]


def test_an_overdue_attempt_is_a_failure_and_no_loss(store: Store) -> None:
    run = running(alone=True, time_limit=1.0, max_attempts=1)
    with heard(signals.run_lost) as lost, heard(signals.run_failed) as failed:
        reaped(store, run, overdue=True)
        drain()
    assert not lost
    assert [(facts["run"], facts["error"]) for facts in failed] == [(run.pk, "groupjobs.errors.TimedOut")]


def test_a_publication_that_fails_is_announced(store: Store, valkey: EmbeddedValkey) -> None:
    with heard(signals.publication_failed) as said:
        valkey.kill()
        first = note.enqueue("a")
        second = note.enqueue("b")
    assert [(facts["sender"], facts["queue"], facts["runs"]) for facts in said] == [
        (None, "default", [pk_of(first)]),
        (None, "default", [pk_of(second)]),
    ]
    assert said[0]["error"] is not None
    assert said[1]["error"] is None, "the breaker is open: nobody was asked"


def test_a_receiver_that_raises_changes_nothing(store: Store, valkey: EmbeddedValkey) -> None:
    def bad(**_: Any) -> None:
        raise ValueError("a bad receiver")

    signals.publication_failed.connect(bad)
    try:
        valkey.kill()
        result = note.enqueue("a")
    finally:
        signals.publication_failed.disconnect(bad)
    assert JobRun.objects.get(pk=result.id).unpublished


def cancel_waiting() -> JobRun:
    run = JobRun.objects.get(pk=note.enqueue("a").id)
    control.cancel([run.pk], by="Ada")
    return run


def cancel_itself() -> JobRun:
    result = gives_up.enqueue("a")
    drain()
    return JobRun.objects.get(pk=result.id)


def expire() -> JobRun:
    result = note.using(expires=3600).enqueue("a")
    JobRun.objects.update(expires_at="2001-01-01T00:00Z")
    drain()
    return JobRun.objects.get(pk=result.id)


def fall_with_the_line() -> JobRun:
    fails.using(group="g", after_failure="cancel").enqueue("a")
    result = note.enqueue("b")
    drain()
    return JobRun.objects.get(pk=result.id)


@pytest.mark.parametrize("act", [cancel_waiting, cancel_itself, expire, fall_with_the_line])
def test_every_way_to_be_cancelled_is_announced(store: Store, act: Callable[[], JobRun]) -> None:
    with heard(signals.run_cancelled) as said:
        run = act()
        drain()
    run.refresh_from_db()
    facts = {"run": run.pk, "queue": "default", "job": run.job, "reason": run.reason}
    assert [entry for entry in said if entry["run"] == run.pk] == [{"sender": JobRun, **facts}]
    assert run.reason


def test_the_others(store: Store) -> None:
    with (
        heard(signals.run_begun) as begun,
        heard(signals.run_succeeded) as succeeded,
        heard(signals.run_retried) as retried,
        heard(signals.run_failed) as failed,
    ):
        good, bad = flaky.enqueue("a", failures=1), fails.enqueue("b")
        drain()
    assert sorted(facts["run"].id for facts in begun) == sorted([pk_of(good), pk_of(good), pk_of(bad)])
    assert [facts["run"] for facts in succeeded] == [pk_of(good)]
    assert [(facts["run"], facts["error"]) for facts in retried] == [(pk_of(good), "builtins.ValueError")]
    assert [(facts["run"], facts["error"]) for facts in failed] == [(pk_of(bad), "builtins.ValueError")]


def test_a_retry_that_was_taken_as_a_cancel_is_announced_as_one(store: Store, journal: Said, gate: Path) -> None:
    result = fails_at_the_gate.enqueue("a", str(gate))
    with ends() as said, serving():
        wait_until(journal)
        control.cancel([pk_of(result)])
        gate.touch()
        wait_until(lambda: statuses([result]) == ["CANCELLED"])
    assert said == ["run_cancelled"]
    assert JobRun.objects.get(pk=result.id).reason == "requested"


@pytest.mark.parametrize("status", ["ABANDONED", "CANCELLED"])
def test_an_outcome_that_the_row_does_not_take_is_not_announced(
    store: Store, journal: Said, gate: Path, status: str
) -> None:
    """Somebody ended the run while its handler was at work."""
    result = waits.enqueue("a", str(gate))
    with ends() as said, serving():
        wait_until(journal)
        change(again(pk_of(result)), status=status)
        gate.touch()
        wait_until(lambda: ["a", "ends"] in journal())
    assert statuses([result]) == [status]
    assert said == []


@pytest.mark.parametrize("hook", ["says", "raises"])
def test_a_commit_is_announced_whatever_follows_it(store: Store, journal: Said, hook: str) -> None:
    nests.using(max_attempts=3).enqueue("a", hook=hook)
    with ends() as said:
        drain()
    assert said == ["run_succeeded"]
