"""Jobs of these tests, found by their module path."""

from __future__ import annotations

import ctypes

from groupjobs import job
from tests.jobsapp.journal import say


@job
def holds_the_interpreter(label: str, seconds: float) -> None:
    """No other thread of the process runs for so long."""
    say(label, "begins")
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    say(label, "ends")
