"""The only writer of rows: one module per verb, exact predicates, lists everywhere."""

from groupjobs.ledger.attempts import Attempt, record
from groupjobs.ledger.beginning import Beginning, begin
from groupjobs.ledger.database import CONNECTION_ERRORS, alias, connection, forget_connection, one_commit
from groupjobs.ledger.groups import cancel_waiting, group_row, mark_opened, set_hold, set_limits, was_opened
from groupjobs.ledger.inserting import Batch, Line, flag_unpublished, insert, rows
from groupjobs.ledger.loading import load
from groupjobs.ledger.paging import (
    ended_within,
    group_page,
    live_among,
    live_page,
    queues_with_live_runs,
    running_page,
    running_with,
    unpublished_page,
)
from groupjobs.ledger.progressing import write_progress
from groupjobs.ledger.pruning import count_old, prune
from groupjobs.ledger.reporting import acknowledge_report, claim_report, unreported
from groupjobs.ledger.reviving import ask_to_cancel, find, head_of, reschedule, revive, start_over
from groupjobs.ledger.settling import GONE, LATE, SETTLED, Answer, Settlement, give_back, read, settle
from groupjobs.ledger.transitions import later, transit, transit_each
from groupjobs.ledger.twins import insert_once

__all__ = [
    "CONNECTION_ERRORS",
    "GONE",
    "LATE",
    "SETTLED",
    "Answer",
    "Attempt",
    "Batch",
    "Beginning",
    "Line",
    "Settlement",
    "acknowledge_report",
    "alias",
    "ask_to_cancel",
    "begin",
    "cancel_waiting",
    "claim_report",
    "connection",
    "count_old",
    "ended_within",
    "find",
    "flag_unpublished",
    "forget_connection",
    "give_back",
    "group_page",
    "group_row",
    "head_of",
    "insert",
    "insert_once",
    "later",
    "live_among",
    "live_page",
    "load",
    "mark_opened",
    "one_commit",
    "prune",
    "queues_with_live_runs",
    "read",
    "record",
    "reschedule",
    "revive",
    "rows",
    "running_page",
    "running_with",
    "set_hold",
    "set_limits",
    "settle",
    "start_over",
    "transit",
    "transit_each",
    "unpublished_page",
    "unreported",
    "was_opened",
    "write_progress",
]
