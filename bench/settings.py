"""The demo project's settings with the benchmark's jobs; servers are named by the environment."""

from project.settings import *  # noqa: F403
from project.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench.work"]
DATABASES["default"].setdefault("CONN_MAX_AGE", None)
SECRET_KEY = "bench"  # noqa: S105
