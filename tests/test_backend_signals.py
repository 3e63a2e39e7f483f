"""The signals of django.tasks: who sends them when, and that nothing is built where nobody listens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from groupjobs import compat, job, results, testing
from groupjobs.backend import GroupJobsBackend
from groupjobs.compat import task_enqueued, task_finished, task_started
from groupjobs.consumer import announcing
from groupjobs.models import JobRun

pytestmark = [pytest.mark.api, pytest.mark.django_db]

Heard = list[tuple[str, Any, str]]
SIGNALS = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}


@job
def works(number: int) -> int:
    return number


@job(max_attempts=2, backoff=0)
def fails(number: int) -> None:
    raise ValueError(number)


@pytest.fixture(autouse=True)
def memory() -> Iterator[None]:
    with testing.in_memory():
        yield


@pytest.fixture
def level() -> Iterator[Callable[[int], None]]:
    """Sets the level of Django's own logger of tasks."""
    logger = logging.getLogger(compat.MODULE)
    before = logger.level
    yield logger.setLevel
    logger.setLevel(before)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The runs of which the consumer has built results, a list for each time."""
    asked: list[list[int]] = []
    real = results.results_of_runs

    def noted(runs: Any) -> Any:
        asked.append(list(runs))
        return real(runs)

    monkeypatch.setattr(announcing, "results_of_runs", noted)
    return asked


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Each signal with its sender's class, the run, and the status that the result shows."""
    said: Heard = []

    def receiver(name: str) -> Callable[..., None]:
        def hear(sender: Any, task_result: Any, **_: Any) -> None:
            assert sender is GroupJobsBackend
            said.append((name, task_result.id, str(task_result.status)))

        return hear

    receivers = [(signal, receiver(name)) for name, signal in SIGNALS.items()]
    for signal, hear in receivers:
        signal.connect(hear)
    yield said
    for signal, hear in receivers:
        signal.disconnect(hear)


def test_each_signal_is_sent_once_by_the_backend(heard: Heard) -> None:
    result = works.enqueue(1)
    testing.drain()
    assert heard == [
        ("enqueued", result.id, "READY"),
        ("started", result.id, "RUNNING"),
        ("finished", result.id, "SUCCESSFUL"),
    ]


def test_each_attempt_starts_and_only_the_last_finishes(heard: Heard) -> None:
    result = fails.enqueue(1)
    testing.drain()
    assert [(name, status) for name, _, status in heard] == [
        ("enqueued", "READY"),
        ("started", "RUNNING"),
        ("started", "RUNNING"),
        ("finished", "FAILED"),
    ]
    result.refresh()
    assert [error.exception_class for error in result.errors] == [ValueError] * 2


def test_with_only_django_s_own_logger_and_no_info_nothing_is_built(
    level: Callable[[int], None], built: list[list[int]]
) -> None:
    assert [len(signal.receivers) for signal in SIGNALS.values()] == [1, 1, 1], "Django's own logger listens"
    level(logging.WARNING)
    works.enqueue_many([{"number": number} for number in range(5)])
    testing.drain()
    assert built == []


def test_with_info_every_run_is_told(level: Callable[[int], None], built: list[list[int]]) -> None:
    level(logging.INFO)
    runs = {int(result.id) for result in works.enqueue_many([{"number": number} for number in range(5)])}
    testing.drain()
    assert sorted(run for runs in built for run in runs) == sorted([*runs, *runs])


def test_a_failure_is_told_without_info(
    level: Callable[[int], None], built: list[list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    level(logging.WARNING)
    good, bad = works.enqueue(1), fails.enqueue(1)
    testing.drain()
    assert built == [[int(bad.id)]]
    said = [record.getMessage() for record in caplog.records if record.name == compat.MODULE]
    assert len(said) == 1
    assert bad.id in said[0]
    assert good.id not in said[0]


def test_another_receiver_hears_without_info(
    level: Callable[[int], None], built: list[list[int]], heard: Heard
) -> None:
    level(logging.CRITICAL)
    works.enqueue(1)
    testing.drain()
    assert [name for name, *_ in heard] == ["enqueued", "started", "finished"]
    assert len(built) == 2


def test_a_receiver_that_raises_in_the_consumer_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def bad(**_: Any) -> None:
        raise ValueError("a bad receiver")

    result = works.enqueue(1)
    for signal in (task_started, task_finished):
        signal.connect(bad)
    try:
        testing.drain()
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(bad)
    assert JobRun.objects.get(pk=result.id).status == "SUCCEEDED"
    said = [record for record in caplog.records if "receiver of a django.tasks signal raised" in record.getMessage()]
    assert len(said) == 2
