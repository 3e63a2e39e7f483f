"""The judge: reads a history and names every broken promise. Pure; knows no server."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.history import History, Violation
from tests.chaos.judge import effects, ends, groups, losses

PROMISED = ("lost", "overlaps", "out_of_order", "atomic_twice", "stuck")
KINDS = (*PROMISED, "phantoms", "late", "unexplained", "keys_left", "crashes")
CHECKS = (*ends.CHECKS, *groups.CHECKS, *effects.CHECKS, *losses.CHECKS)


def violations(history: History) -> Iterator[Violation]:
    """Every broken promise of a history that is complete."""
    for check in CHECKS:
        yield from check(history)
    for key in history.keys_left:
        yield Violation("keys_left", f"Redis still has {key}")
    for crash in history.crashes:
        yield Violation("crashes", crash)
