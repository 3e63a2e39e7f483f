"""Tell whoever listens what became of runs, after their rows say so."""

from __future__ import annotations

import logging
from typing import Any, Final

from django.dispatch import Signal

logger = logging.getLogger("groupjobs")
runs_log = logging.getLogger("groupjobs.runs")

RUNS: Final = object()
LOG_LEVELS: Final[dict[int, int]] = {}  # of the lines that the package itself logs, by signal


def heard(signal: Signal) -> bool:
    """Whether anybody does anything with it: our own log does not while its level is off."""
    number = len(signal.receivers)
    if number != 1:
        return number > 1
    level = LOG_LEVELS.get(id(signal))
    return level is None or runs_log.isEnabledFor(level)


def announce(signal: Signal, sender: Any = RUNS, **facts: Any) -> None:
    """Send one of `groupjobs.signals`; a receiver that raises is logged and changes nothing."""
    if not heard(signal):
        return
    if sender is RUNS:
        from groupjobs.models import JobRun as sender  # noqa: N813
    for receiver, answer in signal.send_robust(sender, **facts):
        if isinstance(answer, Exception):
            logger.error("A receiver of a signal of runs raised: %s", receiver, exc_info=answer)
