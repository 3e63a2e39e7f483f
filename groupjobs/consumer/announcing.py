"""Announce what became of runs, to whoever listens: our own signals and those of django.tasks.

Nothing is built for nobody: a run without listeners costs one look at a list for each signal.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from django.db import Error
from django.dispatch import Signal

from groupjobs import compat, ledger, signals, tracing
from groupjobs.consumer.batch import Item
from groupjobs.moves import announce, heard
from groupjobs.results import results_of_runs

logger = logging.getLogger("groupjobs")

ENDED: Final[dict[str, Signal]] = {
    "succeed": signals.run_succeeded,
    "fail": signals.run_failed,
    "retry": signals.run_retried,
    "cancel": signals.run_cancelled,
}


def begun(items: Sequence[Item]) -> bool:
    """The rows of a batch say RUNNING: nothing is sent yet. Answers whether anybody wants to hear of its starts.

    Results are read for all of it at once.
    """
    wanted = bool(items) and compat.wanted(compat.task_started)
    if wanted:
        results = _results(items)
        for item in items:
            item.result = results.get(item.run)
    return wanted or tracing.active() or heard(signals.run_begun)


def starting(queue: str, worker: str, item: Item) -> None:
    """The handler is about to start; to be called if `begun` said so of its batch."""
    if tracing.active():
        told = {"run_id": item.run, "group": item.row.group, "attempt": item.attempt, "fence": item.reservation.fence}
        item.span = tracing.begin(queue, item.row.job, item.row.labels, told)
    if heard(signals.run_begun):
        fence = item.reservation.fence
        announce(signals.run_begun, run=item.row, queue=queue, worker=worker, attempt=item.attempt, fence=fence)
    if item.result is not None:
        _task_signal(compat.task_started, item)


def failed(item: Item, error: BaseException) -> None:
    """An attempt failed. Whoever watches errors hears of each, also of those that are tried again."""
    about = {"run": item.run, "queue": item.row.queue, "job": item.row.job, "group": item.row.group}
    fence = item.reservation.fence
    announce(signals.attempt_failed, **about, attempt=item.attempt, fence=fence, exception=error)


def settled(queue: str, items: Sequence[Item]) -> None:
    """The rows of these runs are written; what was not taken (a late word) is not announced."""
    taken = [item for item in items if _taken(item)]
    ears = {word: heard(ENDED[word]) for word in {item.settlement.transition for item in taken if item.settlement}}
    for item in taken:
        assert item.settlement is not None
        signal = ENDED[item.settlement.transition]
        if ears[item.settlement.transition]:
            about = {"run": item.run, "queue": queue, "job": item.row.job, "group": item.row.group}
            announce(signal, **about, attempt=item.attempt, fence=item.reservation.fence, **_facts(item))
    _finished([item for item in taken if item.outcome and item.outcome.verb == "done"])


def _taken(item: Item) -> bool:
    settlement, outcome = item.settlement, item.outcome
    if settlement is None or outcome is None or settlement.transition not in ENDED:
        return False
    return outcome.verb != "back"


def _failed(item: Item) -> bool:
    return item.settlement is not None and item.settlement.transition != "succeed"


def _finished(items: Sequence[Item]) -> None:
    heard = [item for item in items if compat.wanted(compat.task_finished, _failed(item))]
    results = _results(heard)
    for item in heard:
        item.result = results.get(item.run)
        if item.result is not None:
            _task_signal(compat.task_finished, item, _failed(item))


def _results(items: Sequence[Item]) -> dict[int, Any]:
    """The results of these runs, tried twice: what is announced is news, and no run waits for it."""
    if not items:
        return {}
    runs = [item.run for item in items]
    try:
        return results_of_runs(runs)
    except Error:
        ledger.forget_connection()
    try:
        return results_of_runs(runs)
    except Exception:
        logger.exception("Signals of django.tasks are not sent for runs %s: their results cannot be read.", runs)
        return {}


def _facts(item: Item) -> dict[str, Any]:
    settlement = item.settlement
    assert settlement is not None
    error = (settlement.error or {}).get("class", "")
    if settlement.transition == "succeed":
        return {"seconds": item.seconds}
    if settlement.transition == "retry":
        return {"delay": settlement.delay, "error": error}
    if settlement.transition == "cancel":
        return {"reason": settlement.reason}
    return {"seconds": item.seconds, "error": error, "reason": settlement.reason}


def _task_signal(signal: Signal, item: Item, failed: bool = False) -> None:
    try:
        compat.send(signal, _sender(item), lambda: item.result, failed)
    except Exception:
        logger.exception("A receiver of a django.tasks signal raised for run %s.", item.run)


def _sender(item: Item) -> type[Any]:
    assert item.handler is not None
    return type(item.handler.task.get_backend())
