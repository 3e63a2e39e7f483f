"""The demo project's settings with the benchmark's jobs; servers are named by the environment."""

import os

from project.settings import *  # noqa: F403
from project.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench.work"]
DATABASES["default"].setdefault("CONN_MAX_AGE", None)
SECRET_KEY = "bench"  # noqa: S105
CELERY_WORKER_PREFETCH_MULTIPLIER = int(os.environ.get("BENCH_PREFETCH") or 1)
CELERY_TASK_DEFAULT_QUEUE = os.environ.get("BENCH_QUEUE") or "celery"
