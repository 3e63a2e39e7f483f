"""Withdraw: take cancelled runs out of their lines, after their rows said so."""

from __future__ import annotations

from collections.abc import Sequence

from groupjobs.moves.publishing import REDIS_ERRORS, outage
from groupjobs.store import store_for
from groupjobs.store.keys import line_name


def withdraw(queue: str, runs: Sequence[tuple[int, str, int]], force: bool = False) -> dict[int, str]:
    """Tell Redis that these runs (id, group, life) are cancelled: "removed", "held" or "absent" for each.

    By force, the watchdogs of the holders kill their processes.
    An empty answer when Redis is down: a consumer that reserves such a run finds its row and drops it.
    """
    try:
        words = store_for(queue).withdraw([(run, line_name(group, run), life) for run, group, life in runs], force)
    except REDIS_ERRORS as error:
        outage.failed(error, "cancelled runs leave their lines when it is back")
        return {}
    return {run: word for (run, _, _), word in zip(runs, words, strict=True)}
