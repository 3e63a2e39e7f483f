"""The test settings with the chaos application and little else; the environment names the servers."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import GROUPJOBS, INSTALLED_APPS

NEEDED = ("django.contrib.auth", "django.contrib.contenttypes", "django_tasks", "groupjobs")
INSTALLED_APPS = [*(app for app in INSTALLED_APPS if app in NEEDED), "tests.chaos.app"]
ROOT_URLCONF = "tests.chaos.app.urls"
TEMPLATES = []
MIDDLEWARE = []
GROUPJOBS = {
    **GROUPJOBS,
    "WORKER_TTL": float(os.environ.get("CHAOS_TTL") or 2.0),
    "SWEEP_INTERVAL": 10,
    "CONSUMER_SECONDS": 5,
}
