"""Groups, queues and workers in the admin: pages of their own in the place of a list of rows."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from groupjobs import conf, ledger
from groupjobs.admin.grouping import act_view, allowed
from groupjobs.admin.groups import groups_context, row_of
from groupjobs.admin.queues import queue_pages
from groupjobs.admin.readonly import ReadOnly
from groupjobs.admin.recent import ended_of
from groupjobs.explain import explained, line_of, mend_text, reason_text
from groupjobs.models import JobGroup


@admin.register(JobGroup)
class GroupAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    """The page of groups in the place of the list, and the pages beside it."""

    def get_urls(self) -> list[URLPattern]:
        """No page of a row: somebody set something on few groups only."""
        views = {
            "changelist": ("", self.changelist_view),
            "group": ("group/", self.group_view),
            "queues": ("queues/", self.queues_view),
            "act": ("act/", self.act),
        }
        return [
            path(address, self.admin_site.admin_view(view), name=f"groupjobs_jobgroup_{name}")
            for name, (address, view) in views.items()
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Groups with their states and reasons."""
        self._check(request)
        return self._page(request, "groups", _("Groups"), {**groups_context(request), **(extra_context or {})})

    def group_view(self, request: HttpRequest) -> HttpResponse:
        """One group, or one run that is a group of its own."""
        self._check(request)
        place = _place(request)
        (known,) = explained([place])
        row = row_of(known)
        context = {
            "row": row,
            "mend": mend_text(known.state.mend),
            "line": [(run, reason_text(run.reason)) for run in line_of(*place)],
            "ended": [(run, reason_text(run.reason)) for run in ended_of(*place)],
        }
        return self._page(request, "group", row.name, context)

    def queues_view(self, request: HttpRequest) -> HttpResponse:
        """Queues and workers."""
        self._check(request)
        return self._page(request, "queues", _("Queues and workers"), {"pages": queue_pages()})

    def act(self, request: HttpRequest) -> HttpResponse:
        """Hold, resume and the other deeds."""
        self._check(request)
        return act_view(self, request)

    def _check(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _page(self, request: HttpRequest, name: str, title: str, context: dict[str, Any]) -> HttpResponse:
        request.current_app = self.admin_site.name
        every = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            "here": name,
            "may": allowed(request),
        }
        return TemplateResponse(request, f"groupjobs/admin/{name}.html", {**every, **context})

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may see runs may see their groups."""
        return request.user.has_perm("groupjobs.view_jobrun")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """As for runs."""
        return self.has_view_permission(request)


def _place(request: HttpRequest) -> tuple[str, str, int]:
    queue, group, run = (request.GET.get(name, "") for name in ("queue", "group", "run"))
    number = int(run) if run.isascii() and run.isdigit() and len(run) < 19 else 0
    known = queue in conf.current().queues or queue in ledger.queues_with_live_runs()
    if not known or (not group and not number) or "\0" in group:
        raise Http404
    return queue, group, 0 if group else number
