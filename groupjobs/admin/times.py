"""Filters by time. `finished_at` has an index; a bound on `enqueued_at` is found by halving the ids."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import admin
from django.db.models import Max, Min, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from groupjobs import ledger
from groupjobs.admin.filters import found
from groupjobs.models import JobRun

SPANS: Final = (
    ("hour", _("last hour"), timedelta(hours=1)),
    ("day", _("last 24 hours"), timedelta(days=1)),
    ("week", _("last 7 days"), timedelta(days=7)),
)
MARGIN: Final = 1_000  # ids by which commits may overtake each other


class SpanFilter(admin.SimpleListFilter):
    """One of a few spans that end now, by the database's clock."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The spans."""
        return [(name, text) for name, text, _span in SPANS]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Rows in the chosen span."""
        span = next((span for name, _text, span in SPANS if name == self.value()), None)
        return queryset if span is None else self.since(queryset, span)

    def since(self, queryset: QuerySet[Any], span: timedelta) -> QuerySet[Any]:
        """Rows since so long."""
        raise NotImplementedError


class FinishedFilter(SpanFilter):
    """When runs ended."""

    title = _("finished")
    parameter_name = "finished"

    def since(self, queryset: QuerySet[Any], span: timedelta) -> QuerySet[Any]:
        """Through the index."""
        return found(queryset, lambda rows: rows.filter(finished_at__gte=Now() - span))


class EnqueuedFilter(SpanFilter):
    """When runs were enqueued."""

    title = _("enqueued")
    parameter_name = "enqueued"

    def since(self, queryset: QuerySet[Any], span: timedelta) -> QuerySet[Any]:
        """Through the primary key: ids grow with time, but for commits that overtake each other."""
        rows = JobRun.objects.using(ledger.alias())
        now = rows.order_by("-pk").annotate(now=Now()).values_list("now", flat=True).first()
        if now is None:
            return queryset
        start = now - span
        return queryset.filter(pk__gte=first_since(start) - MARGIN, enqueued_at__gte=start)


def first_since(start: datetime) -> int:
    """About the lowest id that was enqueued since `start`: a look at some twenty rows."""
    rows = JobRun.objects.using(ledger.alias())
    low = rows.aggregate(lowest=Min("pk"))["lowest"] or 0  # both ends in one query would read the whole table
    high = (rows.aggregate(highest=Max("pk"))["highest"] or 0) + 1
    while low < high:
        middle = (low + high) // 2
        there = rows.filter(pk__gte=middle).order_by("pk").values_list("enqueued_at", flat=True).first()
        if there is None or there >= start:
            high = middle
        else:
            low = middle + 1
    return low
