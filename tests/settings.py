"""The demo project's settings with the test application; servers are named by tests.servers.session."""

from __future__ import annotations

import json
import os

from project.settings import *  # noqa: F403
from project.settings import DATABASES, GROUPJOBS, INSTALLED_APPS, LOGGING

INSTALLED_APPS = [*INSTALLED_APPS, "tests.jobsapp"]
SECRET_KEY = "tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# A server that is not ours may have another test process on it.
if (private := os.environ.get("GROUPJOBS_TEST_DB_NAME")) and not DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": private}

# A test that starts a worker says more here, for both sides: {"WORKER_TTL": 2}, {"worker_pool": "threads"}.
GROUPJOBS = {"WORKER_TTL": 5, "SWEEP_INTERVAL": 30, **GROUPJOBS}
globals().update(
    {f"CELERY_{name.upper()}": value for name, value in json.loads(os.environ.get("CELERY") or "{}").items()}
)

LOGGING = {**LOGGING, "root": {"level": os.environ.get("LOG_LEVEL", "INFO"), "handlers": ["stderr"]}}
