"""Waiting on a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], timeout: float = 15.0, what: str = "", pause: float = 0.01) -> T:
    """The first true answer of `condition`; AssertionError after `timeout` seconds, with the last answer."""
    deadline = time.monotonic() + timeout
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what or condition}; the last answer was {answer!r}")
        time.sleep(pause)
    return answer
