"""Admit a batch: which reserved runs begin, and what becomes of the others. Decisions only."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from groupjobs.consumer.batch import Item
from groupjobs.lifecycle import (
    BAD_ARGUMENTS,
    DONE,
    UNKNOWN_JOB,
    Admission,
    Lease,
    Seen,
    admit,
    admit_unknown,
)
from groupjobs.registry import Handler
from groupjobs.store import Reservation
from groupjobs.store.keys import line_name

Resolve = Callable[[str], Handler | None]


@dataclass
class Decided:
    """A batch after the decision: items that may begin, and the others with their admissions."""

    begin: list[tuple[Item, Admission]] = field(default_factory=list)
    others: list[tuple[Reservation, Seen | None, Admission]] = field(default_factory=list)


def decide(
    reservations: Sequence[Reservation], rows: Mapping[int, Seen], resolve: Resolve, consumer: str, grace: float
) -> Decided:
    """Decide in the order of the line; behind a run that does not begin its group goes back too."""
    decided = Decided()
    blocked: set[str] = set()
    for reservation in reservations:
        row = rows.get(reservation.run)
        item, admission = _one(reservation, row, resolve, consumer, grace)
        if reservation.group in blocked and admission.kind == "begin":
            admission = Admission("back", "behind", lost=admission.lost, counted=admission.counted, blocks=True)
        if admission.blocks or _ends_badly(row, admission):
            blocked.add(reservation.group)
        if admission.kind == "begin" and item:
            decided.begin.append((item, admission))
        else:
            decided.others.append((reservation, row, admission))
    return decided


def _ends_badly(row: Seen | None, admission: Admission) -> bool:
    return row is not None and admission.kind == "abandon" and row.after_failure != "continue"


def _one(
    reservation: Reservation, row: Seen | None, resolve: Resolve, consumer: str, grace: float
) -> tuple[Item | None, Admission]:
    if row is None or line_name(row.group, row.id) != reservation.group:
        return None, DONE
    lease = Lease(
        reservation.fence, reservation.alone, reservation.healed, reservation.interrupted, consumer, reservation.overdue
    )
    admission = admit(row, lease)
    if admission.kind != "begin":
        return None, admission
    handler = resolve(row.job)
    if handler is None:
        return None, admit_unknown(admission, row.age, grace, UNKNOWN_JOB)
    item = Item(reservation, row, handler, attempt=row.attempts + 1 + admission.counted)
    if not _bind(item, handler):
        return None, admit_unknown(admission, row.age, grace, BAD_ARGUMENTS)
    return item, admission


def _bind(item: Item, handler: Handler) -> bool:
    """Load the arguments into the item and try them against the signature."""
    try:
        args, kwargs = json.loads(item.row.args), json.loads(item.row.kwargs)
    except (ValueError, TypeError):
        return False
    item.args, item.kwargs = args, kwargs
    return isinstance(args, list) and isinstance(kwargs, dict) and handler.fits(args, kwargs)
