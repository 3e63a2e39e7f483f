"""The conditions of the partial indexes as constants in the SQL: SQLite does not use such an index for parameters."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from django.db.models import CharField, QuerySet, Value

from groupjobs.lifecycle import ABANDONED, CANCELLED, FAILED, LIVE, READY, RUNNING

Rows = TypeVar("Rows", bound="QuerySet[Any]")


class Status(Value):
    """A status that is written into the SQL; never made from what somebody sent."""

    def __init__(self, status: str) -> None:
        super().__init__(status, output_field=CharField())

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[str | int, ...]]:
        """The quoted word, without a parameter."""
        return f"'{self.value}'", ()


_LIVE: Final = [Status(status) for status in sorted(LIVE)]
_BAD: Final = [Status(status) for status in (FAILED, ABANDONED, CANCELLED)]


def live(rows: Rows) -> Rows:
    """Those that are READY or RUNNING."""
    found: Rows = rows.filter(status__in=_LIVE)
    return found


def ready(rows: Rows) -> Rows:
    """Those that wait."""
    found: Rows = live(rows).filter(status=Status(READY))
    return found


def running(rows: Rows) -> Rows:
    """Those that are with a consumer."""
    found: Rows = rows.filter(status=Status(RUNNING))
    return found


def ended_badly(rows: Rows) -> Rows:
    """Those that ended without success."""
    found: Rows = rows.filter(status__in=_BAD)
    return found


def unreported(rows: Rows) -> Rows:
    """Abandoned ones whose report is not acknowledged."""
    found: Rows = rows.filter(status=Status(ABANDONED), abandon_reported_at=None)
    return found
