"""Filters of the list of runs; each is served by an index or is bounded."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from groupjobs import conf, registry
from groupjobs.admin.ghosts import ghosts
from groupjobs.admin.searching import latest
from groupjobs.ledger import conditions
from groupjobs.lifecycle import ABANDONED, CANCELLED, FAILED, LIVE, RUNNING, STATUSES

MOST = 1_000  # runs of one group that its filter lists
BAD = (FAILED, ABANDONED, CANCELLED)


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
        """Repeats the condition of the partial index, so that it can be used."""
        value = self.value()
        if value in LIVE:
            return conditions.live(queryset).filter(status=value)
        if value in BAD:
            return conditions.ended_badly(queryset).filter(status=value)
        several = {"live": conditions.live, "bad": conditions.ended_badly}.get(value or "")
        if several is not None:
            return several(queryset)
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
        """Runs of this queue."""
        return queryset.filter(queue=self.value()) if self.value() else queryset


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
        """Runs of this job."""
        return queryset.filter(job=self.value()) if self.value() else queryset


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
        return queryset.filter(unpublished=True) if value == "unpublished" else queryset


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
        return conditions.live(queryset).filter(status=RUNNING, worker=self.value())
