"""Filters of the list of runs; each is served by an index or is bounded."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from groupjobs import conf, registry
from groupjobs.lifecycle import ABANDONED, CANCELLED, FAILED, LIVE, STATUSES

BAD = (FAILED, ABANDONED, CANCELLED)


class StatusFilter(admin.SimpleListFilter):
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
            return queryset.filter(status__in=sorted(LIVE)).filter(status=value)
        if value in BAD:
            return queryset.filter(status__in=BAD).filter(status=value)
        several = {"live": sorted(LIVE), "bad": BAD}.get(value or "")
        if several is not None:
            return queryset.filter(status__in=several)
        return queryset.filter(status=value) if value else queryset


class QueueFilter(admin.SimpleListFilter):
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


class JobFilter(admin.SimpleListFilter):
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
