"""Log lines about runs: each with what it is about, and none where its level is off."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from groupjobs import control, recovery, signals
from groupjobs.moves import telling
from groupjobs.store import Store
from tests.core.rows import again, change, new, running
from tests.core.serving import drain, pk_of, serve
from tests.jobsapp.jobs import fails, flaky, noop, note, wants_a_person

ABOUT = ("run_id", "group", "queue", "job", "attempt", "fence")


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "groupjobs.runs"]


def record_of(caplog: pytest.LogCaptureFixture, part: str) -> Any:
    return next(record for record in caplog.records if part in record.getMessage())


def test_the_life_of_a_run(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "groupjobs.runs")
    run = pk_of(note.enqueue("a", group="blue"))
    drain()
    begun, succeeded = lines(caplog)
    assert (begun[0], succeeded[0]) == ("DEBUG", "DEBUG")
    assert begun[1].startswith(f"Run {run} of tests.jobsapp.jobs.note begins attempt 1 on ")
    assert succeeded[1].startswith(f"Run {run} of tests.jobsapp.jobs.note succeeded after ")
    for part in ("begins", "succeeded"):
        record = record_of(caplog, part)
        fence = again(run).fence
        told = (run, "blue", "default", "tests.jobsapp.jobs.note", 1, fence)
        assert tuple(getattr(record, name) for name in ABOUT) == told


def test_each_failed_attempt_is_an_error_with_its_traceback(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    run, lost = pk_of(flaky.enqueue("a", failures=1)), pk_of(fails.enqueue("b"))
    drain()
    record = record_of(caplog, f"tests.jobsapp.jobs.flaky (run {run}, attempt 1) failed")
    assert record.levelname == "ERROR"
    assert record.exc_info[0] is ValueError
    assert (record.run_id, record.attempt, record.job) == (run, 1, "tests.jobsapp.jobs.flaky")
    levels = {text.partition(":")[0]: level for level, text in lines(caplog)}
    assert levels[f"Run {lost} of tests.jobsapp.jobs.fails is FAILED"] == "WARNING"
    assert [level for level, text in lines(caplog) if "is tried again in" in text] == ["INFO"]


def test_an_attempt_that_was_killed_for_its_time_limit_is_an_error_too(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.semantics.test_signals import reaped

    run = running(alone=True, time_limit=1.0, max_attempts=1)
    reaped(store, run, overdue=True)
    drain()
    record = record_of(caplog, "failed")
    assert (record.levelname, record.exc_info[0].__name__, record.run_id) == ("ERROR", "TimedOut", run.pk)


def test_losses_abandonments_and_recoveries(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    lost, doomed = running(alone=True), running(alone=True, max_losses=0, group="other")
    recovery.recover()
    said = {text: level for level, text in lines(caplog)}
    assert said[f"Run {lost.pk} of {lost.job} was lost with worker here:1:old"] == "WARNING"
    assert said[f"Run {doomed.pk} of {doomed.job} is ABANDONED: too_many_losses"] == "ERROR"
    assert said["Recovered queue default: 2 examined, 1 requeued, 1 abandoned, 1 reported"] == "INFO"
    assert record_of(caplog, "Recovered").counts["requeued"] == 1


def test_holds_and_cancels(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    wants_a_person.enqueue("a")
    serve()
    control.resume("default", "g", "anna")
    control.hold("default", "", "provider is down", "anna")
    (run,) = new(group="other")
    control.cancel([run.pk], "anna")
    said = [text for _level, text in lines(caplog)]
    assert "Group 'g' of queue default is held: look" in said
    assert "Group 'g' of queue default is open again (by anna)" in said
    assert "Queue default is held: provider is down (by anna)" in said
    assert f"Run {run.pk} of {run.job} is CANCELLED: requested by anna" in said


def test_nothing_is_announced_for_nobody(store: Store) -> None:
    """Where the level of a line is off and nobody else listens, a run costs no call."""
    assert telling.runs_log.isEnabledFor(logging.INFO)
    assert not telling.heard(signals.run_begun)
    assert not telling.heard(signals.run_succeeded)
    assert telling.heard(signals.run_failed)
    telling.runs_log.setLevel(logging.CRITICAL)
    try:
        assert not telling.heard(signals.run_failed)
        signals.run_failed.connect(change)
        assert telling.heard(signals.run_failed)
    finally:
        signals.run_failed.disconnect(change)
        telling.runs_log.setLevel(logging.NOTSET)


def test_a_successful_run_says_nothing_by_default(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    noop.enqueue()
    drain()
    assert lines(caplog) == []
