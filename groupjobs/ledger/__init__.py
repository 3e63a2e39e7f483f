"""The only writer of rows: one module per verb, exact predicates, lists everywhere."""

from groupjobs.ledger.attempts import Attempt
from groupjobs.ledger.beginning import Beginning, begin
from groupjobs.ledger.database import CONNECTION_ERRORS, alias, connection, forget_connection, one_commit
from groupjobs.ledger.groups import cancel_waiting, group_row, set_hold
from groupjobs.ledger.inserting import flag_unpublished, insert, rows
from groupjobs.ledger.loading import load
from groupjobs.ledger.progressing import write_progress
from groupjobs.ledger.settling import GONE, LATE, SETTLED, Answer, Settlement, give_back, read, settle
from groupjobs.ledger.transitions import later, transit

__all__ = [
    "CONNECTION_ERRORS",
    "GONE",
    "LATE",
    "SETTLED",
    "Answer",
    "Attempt",
    "Beginning",
    "Settlement",
    "alias",
    "begin",
    "cancel_waiting",
    "connection",
    "flag_unpublished",
    "forget_connection",
    "give_back",
    "group_row",
    "insert",
    "later",
    "load",
    "one_commit",
    "read",
    "rows",
    "set_hold",
    "settle",
    "transit",
    "write_progress",
]
