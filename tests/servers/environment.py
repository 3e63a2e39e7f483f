"""The environment of a process that shares this test's servers and test database."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import connection

from project.databases import address

ROOT = Path(__file__).resolve().parents[2]


def environment(
    groupjobs: Mapping[str, Any] | None = None,
    celery: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """As this process's, with the *test* database, overrides of GROUPJOBS and of Celery's settings, and `env`."""
    return {
        **os.environ,
        "DATABASE_URL": address(connection.settings_dict),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "LOG_LEVEL": "INFO",
        "GROUPJOBS": json.dumps(dict(groupjobs or {})),
        "CELERY": json.dumps(dict(celery or {})),
        **(env or {}),
    }
