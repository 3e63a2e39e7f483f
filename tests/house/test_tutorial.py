"""The tutorial's commands, as they stand in docs/tutorial.md."""

from __future__ import annotations

import re

import pytest

from tests.house.stranger import Stranger
from tests.house.tables import ROOT

pytestmark = [pytest.mark.celery, pytest.mark.slow, pytest.mark.timeout(600)]

STEPS = ("pack", "pay", "ship")


def test_the_tutorial_ends_with_a_run_that_was_recovered_from_a_kill(stranger: Stranger) -> None:
    text = (ROOT / "docs/tutorial.md").read_text()
    commands = re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(commands) >= 10
    # Whatever happens, no worker is left behind.
    stranger.bash("trap 'kill -9 $(jobs -p) 2> /dev/null || true' EXIT\n" + "\n".join(commands))
    lines = (stranger.folder / "steps.log").read_text().splitlines()
    for order in (1, 2, 3):
        ended = [line for line in lines if line.startswith(f"order {order}:") and line.endswith("is done")]
        assert ended == [f"order {order}: {step} is done" for step in STEPS]
    assert any(line.endswith("pay begins, attempt 2") for line in lines)
