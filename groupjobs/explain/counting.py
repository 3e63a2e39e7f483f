"""Counts that read a bounded number of rows, whatever the table holds."""

from __future__ import annotations

from typing import Any, NamedTuple

from groupjobs import ledger
from groupjobs.ledger import conditions
from groupjobs.models import JobRun


class Counted(NamedTuple):
    """A count; `more`: that many were read, and there are more."""

    number: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.number}+" if self.more else str(self.number)


def counted(rows: Any, most: int) -> Counted:
    """Count at most so many rows."""
    number = len(rows.order_by().values_list("pk")[: most + 1])
    return Counted(min(number, most), number > most)


def live_of(queue: str, group: str | None = None) -> Any:
    """The live rows of a queue, or of one of its groups."""
    rows = conditions.live(JobRun.objects.using(ledger.alias()).filter(queue=queue))
    return rows if group is None else rows.filter(group=group)
