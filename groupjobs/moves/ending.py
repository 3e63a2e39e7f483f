"""End a run outside of a handler: abandoned or cancelled, with what its `after_failure` asks for its group."""

from __future__ import annotations

from groupjobs import ledger
from groupjobs.ledger import Attempt
from groupjobs.lifecycle import Seen
from groupjobs.moves import holding


def end(queue: str, row: Seen, name: str, reason: str, *, counted: bool = False) -> bool:
    """Carry out "abandon" or "cancel" exactly as the row was seen; False when it has changed since.

    `counted`: the RUNNING attempt was lost alone, which the same commit counts and logs.
    """
    stops = name == "abandon" and row.group and row.after_failure in ("hold", "cancel")
    held = None
    with ledger.one_commit():
        if not ledger.transit(name, row.id, row.status, row.fence, reason=reason, lost=counted):
            return False
        ledger.record([Attempt.lost(row, row.fence)] if counted else [])
        if stops:
            held = holding.hold_row(queue, row.group, f"after_failure={row.after_failure}: run {row.id} ended")
    if held is not None:
        holding.tell(held)
    if stops and row.after_failure == "cancel":
        holding.cancel_line(queue, row.group, f"run {row.id} of the group ended in failure")
    return True
