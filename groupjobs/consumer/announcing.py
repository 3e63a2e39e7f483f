"""Announce what became of runs, to whoever listens: our own signals and those of django.tasks.

Nothing is built for nobody: a run without listeners costs one look at a list for each signal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.dispatch import Signal

from groupjobs import compat, signals
from groupjobs.consumer.batch import Item

logger = logging.getLogger("groupjobs")

ENDED: Final[dict[str, Signal]] = {
    "succeed": signals.run_succeeded,
    "fail": signals.run_failed,
    "retry": signals.run_retried,
    "cancel": signals.run_cancelled,
}


def begun(queue: str, item: Item) -> None:
    """The row says RUNNING and the handler is about to start."""
    if signals.run_begun.receivers:
        _send(signals.run_begun, run=item.row, queue=queue, worker=item.row.worker)
    _task_signal(compat.task_started, item)


def settled(queue: str, items: Sequence[Item]) -> None:
    """The rows of these runs are written; what was not taken (a late word) is not announced."""
    for item in items:
        settlement, outcome = item.settlement, item.outcome
        if settlement is None or outcome is None or settlement.transition not in ENDED:
            continue
        if outcome.verb == "back":
            continue
        signal = ENDED[settlement.transition]
        if signal.receivers:
            _send(signal, run=item.run, queue=queue, job=item.row.job, **_facts(item))
        if outcome.verb == "done":
            _task_signal(compat.task_finished, item, failed=settlement.transition != "succeed")


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


def _send(signal: Signal, **facts: Any) -> None:
    from groupjobs.models import JobRun

    for receiver, answer in signal.send_robust(JobRun, **facts):
        if isinstance(answer, Exception):
            logger.error("A receiver of a signal of runs raised: %s", receiver, exc_info=answer)


def _task_signal(signal: Signal, item: Item, failed: bool = False) -> None:
    if not compat.wanted(signal, failed):
        return
    try:
        compat.send(signal, _sender(item), _result(item), failed)
    except Exception:
        logger.exception("A receiver of a django.tasks signal raised for run %s.", item.run)


def _sender(item: Item) -> type[Any]:
    assert item.handler is not None
    return type(item.handler.task.get_backend())


def _result(item: Item) -> Callable[[], Any]:
    from groupjobs.results import result_of_run

    return lambda: result_of_run(item.run)
