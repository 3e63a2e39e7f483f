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
        from groupjobs import checks, logs, registry

        assert checks.TAG  # importing them registers the checks
        logs.connect()
        _observe()
        registry.autodiscover()


def _observe() -> None:
    """Count and trace where the settings ask for it; wrong settings are told of by the system checks."""
    from django.core.exceptions import ImproperlyConfigured

    from groupjobs import conf, tracing
    from groupjobs.metrics import counting

    try:
        settings = conf.current()
    except ImproperlyConfigured:
        return
    if settings.metrics:
        counting.connect()
    if settings.tracing:
        tracing.install()
