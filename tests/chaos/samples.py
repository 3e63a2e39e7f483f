"""Histories made by hand, for the tests of the judge."""

from __future__ import annotations

from typing import Any

from tests.chaos.history import OK, Attempt, Change, Effect, History, Intent, Kill, Row, Violation
from tests.chaos.judge import violations

MAIN, CHILD, OTHER = 100, 101, 201


def change(run: int, before: str, after: str, fence: int, was: int | None = None, **more: Any) -> Change:
    return Change(run, before, after, fence if was is None else was, fence, **more)


def ended(run: int, fence: int, was: int = 0, status: str = "SUCCEEDED") -> list[Change]:
    """Begun once, ended once."""
    return [change(run, "READY", "RUNNING", fence, was, at=float(run)), change(run, "RUNNING", status, fence)]


def good() -> History:
    """Run 1, then 2 of a group, each done in one attempt; 2 is atomic."""
    return History(
        intents=[Intent("a", "g", 0.0, 0.1), Intent("b", "g", 0.2, 0.3, atomic=True)],
        attempts=[
            Attempt(1, 11, "a", CHILD, MAIN, 1.0, 1.5, OK),
            Attempt(2, 12, "b", CHILD, MAIN, 2.0, 2.5, OK),
        ],
        rows=[Row(1, "a", "SUCCEEDED", 11), Row(2, "b", "SUCCEEDED", 12)],
        changes=[*ended(1, 11), *ended(2, 12)],
        effects=[Effect(1, 11), Effect(2, 12)],
    )


def told(history: History, **other: Any) -> list[Violation]:
    """What the judge says of a history with other parts."""
    names = ("intents", "attempts", "rows", "changes", "effects", "kills", "stops", "keys_left", "crashes")
    parts = {name: getattr(history, name) for name in names}
    return list(violations(History(**{**parts, **other})))


def kinds(history: History, **other: Any) -> set[str]:
    return {violation.kind for violation in told(history, **other)}


def retried() -> History:
    """Run 1 was lost in its first attempt with its child, and done by another; then 2."""
    base = good()
    return History(
        intents=base.intents,
        attempts=[
            Attempt(1, 10, "a", CHILD, MAIN, 0.5),
            Attempt(1, 11, "a", OTHER, MAIN, 1.0, 1.5, OK),
            Attempt(2, 12, "b", OTHER, MAIN, 2.0, 2.5, OK),
        ],
        rows=base.rows,
        changes=[
            change(1, "READY", "RUNNING", 10, 0, at=0.4),
            change(1, "RUNNING", "RUNNING", 11, 10, lost=1, worker=f"host:{MAIN}:abc", at=0.9),
            change(1, "RUNNING", "SUCCEEDED", 11),
            *ended(2, 12),
        ],
        effects=base.effects,
        kills=[Kill(CHILD, MAIN, "child", 0.7)],
    )
