"""The life of a run: its statuses, the named transitions between them, and the pure decisions.

Nothing here touches a database, Redis or Celery: each function maps plain data to a decision that
`ledger` and `moves` carry out under exactly the status and fence that were observed.
"""

from groupjobs.lifecycle.admission import DONE, Admission, Lease, Seen, admit, admit_unknown
from groupjobs.lifecycle.statuses import (
    ABANDONED,
    BAD_ARGUMENTS,
    CANCELLED,
    EXPIRED,
    FAILED,
    LIVE,
    READY,
    REQUESTED,
    RUNNING,
    STATUSES,
    SUCCEEDED,
    TERMINAL,
    TOO_MANY_LOSSES,
    TRANSITIONS,
    UNKNOWN_JOB,
    Transition,
    allowed,
)
from groupjobs.lifecycle.verdicts import EntrySeen, RowSeen, Verdict, condemned, loss_counts, verdict

__all__ = [
    "ABANDONED",
    "BAD_ARGUMENTS",
    "CANCELLED",
    "DONE",
    "EXPIRED",
    "FAILED",
    "LIVE",
    "READY",
    "REQUESTED",
    "RUNNING",
    "STATUSES",
    "SUCCEEDED",
    "TERMINAL",
    "TOO_MANY_LOSSES",
    "TRANSITIONS",
    "UNKNOWN_JOB",
    "Admission",
    "EntrySeen",
    "Lease",
    "RowSeen",
    "Seen",
    "Transition",
    "Verdict",
    "admit",
    "admit_unknown",
    "allowed",
    "condemned",
    "loss_counts",
    "verdict",
]
