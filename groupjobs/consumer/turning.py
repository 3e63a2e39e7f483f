"""Turn away: carry out what was decided about reserved runs that do not begin."""

from __future__ import annotations

from collections.abc import Sequence

from groupjobs import ledger, moves
from groupjobs.ledger import Attempt
from groupjobs.lifecycle import RUNNING, Admission, Seen
from groupjobs.store import Outcome, Reservation

Other = tuple[Reservation, Seen | None, Admission]
ENDING = frozenset({"abandon", "cancel"})


def turn_away(queue: str, others: Sequence[Other]) -> list[Outcome]:
    """Write what the rows need, publish what should be ahead first, and answer what Redis is to hear."""
    publish_ahead([row.ahead for _, row, admission in others if row and row.ahead and admission.reason == "order"])
    for group in {row.group for _, row, admission in others if row and admission.reason == "held"}:
        moves.remind(queue, group)
    return [_turn(reservation, row, admission) for reservation, row, admission in others]


def publish_ahead(runs: Sequence[int]) -> None:
    """Publish earlier runs of a group whose own publication was lost, before their followers go back."""
    if runs:
        moves.publish(ledger.rows(runs))


def _turn(reservation: Reservation, row: Seen | None, admission: Admission) -> Outcome:
    run, fence = reservation.run, reservation.fence
    if row is None or admission.kind == "done":
        return Outcome(run, fence, "done")
    if admission.kind == "owner":
        return Outcome(run, fence, "owner", fence_to=row.fence, owner=row.consumer, owner_worker=row.worker)
    if admission.kind == "overdue":
        return _time_out(reservation, row)
    if admission.kind in ENDING:
        return _end(reservation, row, admission)
    if admission.lost:
        _lose(row, admission)
    verb = "suspect" if admission.kind == "suspect" or (admission.lost and not admission.counted) else "back"
    return Outcome(run, fence, verb, delay_ms=round(admission.delay * 1000), fence_to=row.fence)


def _end(reservation: Reservation, row: Seen, admission: Admission) -> Outcome:
    """The row ends here: abandoned or cancelled; its loss is counted in the same UPDATE."""
    ended = moves.end(row, admission.kind, admission.reason, counted=admission.counted)
    verb = "done" if ended else "back"
    return Outcome(reservation.run, reservation.fence, verb, fence_to=0 if ended else row.fence)


def _time_out(reservation: Reservation, row: Seen) -> Outcome:
    """The watchdog killed its last attempt: a failed try, after which it waits for the next one or has ended."""
    word, delay = moves.time_out(row)
    if word == "retried":
        yields = row.on_retry == "yield"
        return Outcome(reservation.run, reservation.fence, "retry", delay_ms=round(delay * 1000), yields=yields)
    return Outcome(reservation.run, reservation.fence, "done" if word else "back", fence_to=0 if word else row.fence)


def _lose(row: Seen, admission: Admission) -> None:
    """A RUNNING row whose lease was healed goes back to READY, its loss counted if it was alone."""
    with ledger.one_commit():
        lost = ledger.transit("lose", row.id, RUNNING, row.fence, suspect=True, lost=admission.counted)
        if lost:
            ledger.record([Attempt.lost(row, row.fence)])
    if lost:
        moves.tell_lost(row, admission.counted)
