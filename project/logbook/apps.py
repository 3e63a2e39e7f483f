"""The aircraft logbook: flights come in as a file, each leg is entered into its aircraft's logbook."""

from __future__ import annotations

from django.apps import AppConfig


class LogbookConfig(AppConfig):
    """Connects the receiver that starts an import when a file is saved."""

    name = "project.logbook"
    label = "logbook"
    verbose_name = "Aircraft logbook"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the signal receivers."""
        from project.logbook import receivers  # noqa: F401
