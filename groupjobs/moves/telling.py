"""Tell whoever listens what became of runs, after their rows say so."""

from __future__ import annotations

import logging
from typing import Any, Final

from django.dispatch import Signal

logger = logging.getLogger("groupjobs")

RUNS: Final = object()


def announce(signal: Signal, sender: Any = RUNS, **facts: Any) -> None:
    """Send one of `groupjobs.signals`; a receiver that raises is logged and changes nothing."""
    if not signal.receivers:
        return
    if sender is RUNS:
        from groupjobs.models import JobRun as sender  # noqa: N813
    for receiver, answer in signal.send_robust(sender, **facts):
        if isinstance(answer, Exception):
            logger.error("A receiver of a signal of runs raised: %s", receiver, exc_info=answer)
