"""A short chaos run: real servers, a real fleet, one fault every two seconds. `make chaos` runs longer ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

from tests.servers.environment import ROOT

SECONDS = 40
ZEROS = ("lost", "overlaps", "out_of_order", "atomic_twice", "stuck", "phantoms", "late", "unexplained", "keys_left")

pytestmark = [pytest.mark.celery, pytest.mark.slow]


@pytest.mark.timeout(400)
def test_nothing_is_broken_by_faults() -> None:
    if not settings.DATABASES["default"]["ENGINE"].endswith("postgresql"):
        pytest.skip("the chaos run brings a PostgreSQL of its own, so it runs once, with the PostgreSQL leg")
    command = [sys.executable, "-m", "tests.chaos", "--runs", "3000", "--seconds", str(SECONDS), "--faults", "20"]
    seed = os.environ.get("CHAOS_SEED") or "7"
    done = subprocess.run([*command, "--seed", seed], cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout[-20_000:], done.stderr[-5_000:])
    assert done.returncode == 0
    verdict = json.loads(done.stdout.splitlines()[-1])
    assert {name: verdict[name] for name in ZEROS} == dict.fromkeys(ZEROS, 0)
    assert verdict["runs"] >= 3000
    assert verdict["faults"] >= 15
