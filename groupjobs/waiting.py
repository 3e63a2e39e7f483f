"""Wait for a result: for those who miss `.get()`."""

from __future__ import annotations

import math
import time
from datetime import timedelta
from typing import Any, Final, ParamSpec, TypeVar

from groupjobs.compat import TaskResult

P = ParamSpec("P")
R = TypeVar("R")

FIRST_PAUSE: Final = 0.01  # seconds
LONGEST_PAUSE: Final = 1.0


def wait(result: TaskResult[P, R], timeout: float | timedelta | None = None) -> TaskResult[P, R]:
    """Refresh the result until its run has ended, and return it.

    `timeout` is in seconds or a timedelta, None waits for ever; TimeoutError says what the run's status
    was. A run that failed is returned like one that succeeded: ask `return_value` or `errors`. Do not
    call this inside the transaction that enqueued: the run starts when that commits.
    """
    seconds: Any = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if not (seconds is None or (isinstance(seconds, int | float) and not math.isnan(seconds))):
        raise ValueError(f"timeout must be seconds, a timedelta, or None to wait for ever, not {timeout!r}.")
    deadline = None if seconds is None else time.monotonic() + seconds
    pause = FIRST_PAUSE
    result.refresh()
    while not result.is_finished:
        left = pause if deadline is None else deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"Run {result.id} has not ended after {seconds:g} s: its status is {result.status}.")
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
        result.refresh()
    return result
