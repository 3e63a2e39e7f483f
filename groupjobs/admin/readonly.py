"""Rows that people look at: code writes them, deeds change them, retention deletes them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


class ReadOnly:
    """Goes before ModelAdmin: whatever the user may, there is no form to add, change or delete with."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Runs are enqueued by code, and groups begin with their first run."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only the ledger writes rows."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Retention prunes runs, and groups end with their last one."""
        return False
