"""Jobs of these tests, found by their module path."""

from __future__ import annotations

from typing import Any

from groupjobs import job
from tests.jobsapp.journal import say, wait_at


@job(group="{group}", takes_context=True, max_attempts=2, backoff=0.05)
def fails_at_the_gate(context: Any, label: str, gate: str, group: str = "g") -> None:
    """Its first attempt fails once the gate is open."""
    say(label, "begins")
    wait_at(gate)
    if context.attempt == 1:
        raise ValueError(label)
    say(label, "ends")
