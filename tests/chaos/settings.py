"""The test settings with the chaos application; the environment names the servers."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import GROUPJOBS, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.chaos.app"]
TTL = float(os.environ.get("CHAOS_TTL") or 2.0)
GROUPJOBS = {**GROUPJOBS, "WORKER_TTL": TTL, "SWEEP_INTERVAL": 10, "CONSUMER_SECONDS": 5}
