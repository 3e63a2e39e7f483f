"""The statuses of a run and the named transitions between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

READY: Final = "READY"
RUNNING: Final = "RUNNING"
SUCCEEDED: Final = "SUCCEEDED"
FAILED: Final = "FAILED"
ABANDONED: Final = "ABANDONED"
CANCELLED: Final = "CANCELLED"

STATUSES: Final = (READY, RUNNING, SUCCEEDED, FAILED, ABANDONED, CANCELLED)
LIVE: Final = frozenset({READY, RUNNING})
TERMINAL: Final = frozenset({SUCCEEDED, FAILED, ABANDONED, CANCELLED})

# Reasons that rows carry in their `reason` column.
TOO_MANY_LOSSES: Final = "too_many_losses"
UNKNOWN_JOB: Final = "unknown_job"
BAD_ARGUMENTS: Final = "bad_arguments"
EXPIRED: Final = "expired"
REQUESTED: Final = "requested"


class Transition(NamedTuple):
    """One edge of the status graph: from which statuses, to which one."""

    sources: frozenset[str]
    target: str


TRANSITIONS: Final[Mapping[str, Transition]] = {
    "begin": Transition(LIVE, RUNNING),
    "succeed": Transition(frozenset({RUNNING}), SUCCEEDED),
    "fail": Transition(frozenset({RUNNING}), FAILED),
    "retry": Transition(frozenset({RUNNING}), READY),
    "give_back": Transition(frozenset({RUNNING}), READY),
    "lose": Transition(frozenset({RUNNING}), READY),
    "abandon": Transition(LIVE, ABANDONED),
    "cancel": Transition(LIVE, CANCELLED),
    "revive": Transition(TERMINAL, READY),
}


def allowed(name: str, status: str) -> bool:
    """Whether the named transition may leave from `status`; an unknown name raises KeyError."""
    return status in TRANSITIONS[name].sources
