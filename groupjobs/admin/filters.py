"""Filters of the list of runs; each is served by an index or is bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from groupjobs import conf, ledger, registry
from groupjobs.admin.ghosts import ghosts
from groupjobs.admin.searching import latest
from groupjobs.ledger import conditions
from groupjobs.lifecycle import ABANDONED, CANCELLED, FAILED, READY, RUNNING, STATUSES, SUCCEEDED
from groupjobs.models import JobRun

MOST = 1_000  # runs of one group that its filter lists
BAD = (FAILED, ABANDONED, CANCELLED)


def found(queryset: QuerySet[Any], narrow: Callable[[QuerySet[Any]], QuerySet[Any]], **more: Any) -> QuerySet[Any]:
    """Those of the rows that also `narrow` leaves. Where they are few, they are looked up first, through its index.

    Else a database may prefer to walk the table from its newest row, which ends soon only where they are many.
    """
    plain = JobRun.objects.using(queryset.db)
    few = list(narrow(plain.filter(**more)).order_by().values_list("pk", flat=True)[: MOST + 1])
    return queryset.filter(pk__in=few) if len(few) <= MOST else narrow(queryset.filter(**more))


def _unpublished(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.filter(unpublished=True)


def _windowed(request: HttpRequest, queryset: QuerySet[Any], whole: bool = False) -> QuerySet[Any]:
    """The latest runs, unless another filter bounds what is read, or nearly all rows fit."""
    bounded = request.GET.get("status", SUCCEEDED) != SUCCEEDED or request.GET.get("trouble")
    return queryset if whole or bounded else latest(queryset)


class TextFilter(admin.SimpleListFilter):
    """A filter by any text; NUL, which PostgreSQL refuses, counts as no text."""

    def value(self) -> str | None:
        """The text that was asked for."""
        value = super().value()
        return value.replace("\0", "") if value else value


class StatusFilter(TextFilter):
    """One status, or the live ones, or those that ended badly."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Live first: that is what somebody looks for."""
        return [("live", _("live")), ("bad", _("ended badly")), *((status, status) for status in STATUSES)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Through the partial indexes; the newest of the many that succeeded are soon found without one."""
        value = self.value() or ""
        if value in BAD:
            return conditions.ended_badly(queryset).filter(status=value)
        if value == "bad":
            return found(queryset, conditions.ended_badly)
        narrow = {"live": conditions.live, READY: conditions.ready, RUNNING: conditions.running}.get(value)
        if narrow is not None:
            return found(queryset, narrow, queue__in=ledger.queues_with_live_runs())
        return queryset.filter(status=value) if value else queryset


class QueueFilter(TextFilter):
    """A queue of the settings, or whichever the address names."""

    title = _("queue")
    parameter_name = "queue"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The queues of the settings, and the one that was asked for."""
        asked = request.GET.get(self.parameter_name)
        names = {*conf.current().queues, *([asked] if asked else [])}
        return [(name, name) for name in sorted(names)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Runs of this queue; without another filter that is served by an index those among the latest runs."""
        value = self.value()
        if not value:
            return queryset
        return _windowed(request, queryset, value in conf.current().queues and len(conf.current().queues) == 1).filter(
            queue=value
        )


class JobFilter(TextFilter):
    """A job that this process knows, or whichever the address names."""

    title = _("job")
    parameter_name = "job"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Names from the registry: asking the table would read it whole."""
        asked = request.GET.get(self.parameter_name)
        names = {*registry.registered(), *([asked] if asked else [])}
        return [(name, name.rpartition(".")[2]) for name in sorted(names)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Runs of this job; without another filter that is served by an index those among the latest runs."""
        return _windowed(request, queryset).filter(job=self.value()) if self.value() else queryset


class TroubleFilter(admin.SimpleListFilter):
    """What a person should look at."""

    title = _("trouble")
    parameter_name = "trouble"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Kinds of trouble that rows alone do not show by their status."""
        return [
            ("ghost", _("ghost")),
            ("unreported", _("unreported abandonment")),
            ("unpublished", _("not published")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Ghosts are known by Redis; the others have an index each."""
        value = self.value()
        if value == "ghost":
            return queryset.filter(pk__in=ghosts())
        if value == "unreported":
            waiting = conditions.unreported(queryset.order_by("report_after", "pk"))  # in the order of its index
            return queryset.filter(pk__in=list(waiting.values_list("pk", flat=True)[:MOST]))
        return found(queryset, _unpublished) if value == "unpublished" else queryset


class AskedFilter(TextFilter):
    """A value that a link of another page asked for; without one the filter is not shown."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The value that was asked for."""
        asked = request.GET.get(self.parameter_name or "")
        return [(asked, asked)] if asked else []


class GroupFilter(AskedFilter):
    """Runs of a group: the live ones, and those that ended among the latest runs."""

    title = _("group")
    parameter_name = "group"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """An index serves live runs; for ended ones the window is bounded."""
        if not self.value():
            return queryset
        live = conditions.live(queryset).filter(queue__in=list(conf.current().queues), group=self.value())
        live = live.order_by("order", "pk").values_list("pk", flat=True)[:MOST]
        ended = latest(queryset).filter(group=self.value()).values_list("pk", flat=True)[:MOST]
        return queryset.filter(pk__in={*live, *ended})


class WorkerFilter(AskedFilter):
    """Runs that are with a worker now."""

    title = _("worker")
    parameter_name = "worker"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """RUNNING only: no index knows where ended runs were."""
        if not self.value():
            return queryset
        return found(queryset, conditions.running, queue__in=ledger.queues_with_live_runs(), worker=self.value())
