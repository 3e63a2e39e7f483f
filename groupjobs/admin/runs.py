"""Runs in the admin: to look at, and to mend through actions; no row is ever edited here."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from groupjobs import ledger
from groupjobs.admin import columns, filters, times
from groupjobs.admin.actions import ACTIONS, MOST, admin_action
from groupjobs.admin.detail import detail_of, without_payload
from groupjobs.admin.drift import drift_view
from groupjobs.admin.keyset import KeysetChangeList
from groupjobs.admin.readonly import ReadOnly
from groupjobs.admin.searching import search
from groupjobs.models import JobRun


@admin.register(JobRun)
class RunAdmin(ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    """The list of runs and the page of each."""

    list_display = ("number", "status_badge", "group_name", "progress_bar", "job_name", "age", "tries")
    list_display_links = ("number",)
    list_filter = (
        filters.StatusFilter,
        filters.TroubleFilter,
        filters.QueueFilter,
        filters.JobFilter,
        filters.GroupFilter,
        filters.WorkerFilter,
        times.EnqueuedFilter,
        times.FinishedFilter,
    )
    list_select_related = ("progress",)
    list_per_page = 50
    sortable_by = ()
    search_fields = ("pk",)
    search_help_text = gettext_lazy(
        "An id, or part of a group, a job, a label or an argument (among the latest 100,000 runs)."
    )
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    actions = tuple(admin_action(action) for action in ACTIONS)
    change_form_template = "groupjobs/admin/run.html"
    fields = ()

    class Media:
        css = {"all": ("groupjobs/admin.css",)}  # noqa: RUF012

    @admin.display(description=gettext_lazy("run"))
    def number(self, run: Any) -> str:
        """Its id."""
        return f"#{run.pk}"

    @admin.display(description=gettext_lazy("status"))
    def status_badge(self, run: Any) -> str:
        """Status and reason."""
        return columns.status_cell(run)

    @admin.display(description=gettext_lazy("group"), empty_value="-")
    def group_name(self, run: Any) -> str:
        """Its group; a dash for a run that is a group of its own."""
        return str(run.group)

    @admin.display(description=gettext_lazy("job"))
    def job_name(self, run: Any) -> str:
        """The last part of its name, the whole beside it."""
        return columns.job_cell(run)

    @admin.display(description=gettext_lazy("age"))
    def age(self, run: Any) -> str:
        """How long ago it was enqueued."""
        return columns.age_cell(run)

    @admin.display(description=gettext_lazy("attempts"))
    def tries(self, run: Any) -> str:
        """Attempts of this life against the budget."""
        return columns.tries_cell(run)

    @admin.display(description=gettext_lazy("progress"))
    def progress_bar(self, run: Any) -> str:
        """How far it says it is."""
        return columns.progress_cell(run)

    def get_queryset(self, request: HttpRequest) -> QuerySet[JobRun]:
        """Rows of the database that holds the runs, without their payload."""
        return without_payload(JobRun.objects.using(ledger.alias()))

    def get_urls(self) -> list[URLPattern]:
        """The pages beside the list come first: the address of a run takes everything else."""

        def drift(request: HttpRequest) -> HttpResponse:
            return drift_view(self, request)

        return [
            path("drift/", self.admin_site.admin_view(drift), name="groupjobs_jobrun_drift"),
            *super().get_urls(),
        ]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        """Pages by id."""
        return KeysetChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Bounded, whatever is looked for."""
        return search(queryset, search_term), False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list."""
        told = _("All matching runs are selected, up to %s.") % MOST
        return super().changelist_view(
            request, {"title": _("Runs"), "selection_note_all": told, **(extra_context or {})}
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of one run."""
        run = self.get_object(request, object_id)
        context: dict[str, Any] = {} if run is None else {"detail": detail_of(run), "deeds": self.deeds(request, run)}
        context["title"] = _("Run %s") % object_id
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def deeds(self, request: HttpRequest, run: Any) -> list[Any]:
        """The actions that this user may use and that can change this run."""
        fitting = [action for action in ACTIONS if run.status in action.statuses]
        return [action for action in fitting if getattr(self, f"has_{action.needs}_permission")(request)]

    def has_recover_permission(self, request: HttpRequest) -> bool:
        """Asked by the action of this name."""
        return request.user.has_perm("groupjobs.recover_run")

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Asked by the action of this name."""
        return request.user.has_perm("groupjobs.retry_run")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Asked by the action of this name."""
        return request.user.has_perm("groupjobs.cancel_run")

    def has_abandon_permission(self, request: HttpRequest) -> bool:
        """Asked by the action of this name."""
        return request.user.has_perm("groupjobs.abandon_run")
