"""What is announced of runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from groupjobs import signals


@contextmanager
def ends() -> Iterator[list[str]]:
    """Which ends of attempts are announced, in their order."""
    names = ("run_succeeded", "run_failed", "run_retried", "run_cancelled")
    said: list[str] = []
    receivers = [(getattr(signals, name), lambda name=name, **_: said.append(name)) for name in names]
    for signal, receiver in receivers:
        signal.connect(receiver)
    try:
        yield said
    finally:
        for signal, receiver in receivers:
            signal.disconnect(receiver)
