"""The logbook's rows in the admin, to look at: they are written by jobs only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from project.logbook.models import Aircraft, Leg, Refusal, Upload


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that may be looked at and searched, not changed."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows come from jobs."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows stay as they were entered."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A logbook keeps its legs."""
        return False


@admin.register(Upload)
class UploadAdmin(ReadOnlyAdmin):
    """Files of flights."""

    list_display = ("id", "name", "legs", "uploaded_at", "imported_at", "problem")
    exclude = ("content",)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Leave the files themselves in the database."""
        return super().get_queryset(request).defer("content")


@admin.register(Aircraft)
class AircraftAdmin(ReadOnlyAdmin):
    """Aircraft and the ends of their logbooks."""

    list_display = ("tail", "legs", "miles")
    search_fields = ("tail",)


@admin.register(Leg)
class LegAdmin(ReadOnlyAdmin):
    """Entered legs."""

    list_display = ("aircraft", "number", "date", "departure", "carrier", "flight", "origin", "dest", "miles")
    list_select_related = ("aircraft",)
    search_fields = ("=aircraft__tail",)


@admin.register(Refusal)
class RefusalAdmin(ReadOnlyAdmin):
    """Lines that are no legs."""

    list_display = ("upload_id", "line", "message")
