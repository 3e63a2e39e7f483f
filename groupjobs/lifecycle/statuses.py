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
    """One edge of the status graph: from which statuses, to which one, and what has happened."""

    sources: frozenset[str]
    target: str
    meaning: str


TRANSITIONS: Final[Mapping[str, Transition]] = {
    "begin": Transition(LIVE, RUNNING, "a consumer has loaded it; a lost attempt is counted in the same write"),
    "succeed": Transition(frozenset({RUNNING}), SUCCEEDED, "its handler returned"),
    "fail": Transition(frozenset({RUNNING}), FAILED, "its handler raised, and no try is left"),
    "retry": Transition(frozenset({RUNNING}), READY, "its handler raised, and it waits for another try"),
    "give_back": Transition(frozenset({RUNNING}), READY, "its handler never started, or it asked for a hold"),
    "lose": Transition(frozenset({RUNNING}), READY, "its attempt ended as a ghost"),
    "abandon": Transition(LIVE, ABANDONED, "the queue gave it up"),
    "cancel": Transition(LIVE, CANCELLED, "somebody cancelled it, its handler did, or it expired"),
    "revive": Transition(TERMINAL, READY, "a person retries it: a new life"),
}


def allowed(name: str, status: str) -> bool:
    """Whether the named transition may leave from `status`; an unknown name raises KeyError."""
    return status in TRANSITIONS[name].sources
