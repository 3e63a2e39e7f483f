"""The only writer of rows: one module per verb, exact predicates, lists everywhere."""

from groupjobs.ledger.attempts import Attempt
from groupjobs.ledger.beginning import Beginning, begin
from groupjobs.ledger.database import CONNECTION_ERRORS, alias, connection, forget_connection, one_commit
from groupjobs.ledger.groups import group_row, set_hold
from groupjobs.ledger.inserting import flag_unpublished, insert
from groupjobs.ledger.loading import load
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
    "set_hold",
    "settle",
    "transit",
]
