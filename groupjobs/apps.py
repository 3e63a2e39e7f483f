"""Wiring: jobs are discovered, system checks and log receivers are connected."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class GroupJobsConfig(AppConfig):
    """The app `groupjobs`."""

    name = "groupjobs"
    verbose_name = _("Grouped jobs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Find the jobs of every app, in web processes, workers and commands alike."""
        from groupjobs import checks, registry

        assert checks.TAG  # importing them registers the checks
        registry.autodiscover()
