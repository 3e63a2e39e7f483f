"""The application whose jobs the tests run."""

from __future__ import annotations

from django.apps import AppConfig


class JobsAppConfig(AppConfig):
    """Jobs with the outcomes that tests need."""

    name = "tests.jobsapp"
    label = "jobsapp"
    default_auto_field = "django.db.models.BigAutoField"
