"""Reads the notes of producers back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.chaos.history import COMMITTED, UNKNOWN, Intent

EXPECTED = {"doomed": "FAILED", "poison": "ABANDONED"}


def intents(lines: Iterable[str]) -> Iterator[Intent]:
    """What one producer meant to enqueue, and what came of it."""
    calls: list[tuple[float, int, list[str]]] = []
    fates: dict[int, tuple[str, float]] = {}
    for note in map(json.loads, lines):
        if "fate" in note:
            fates[note["batch"]] = (note["fate"], note["at"])
        else:
            calls += [(note["at"], note["batch"], run) for run in note["runs"]]
    for called, batch, run in calls:
        yield _intent(called, run, *fates.get(batch, (UNKNOWN, 0.0)))


def _intent(called: float, run: Any, fate: str, at: float) -> Intent:
    token, group, kind, delayed = run
    return Intent(
        token,
        group,
        called,
        at if fate == COMMITTED else None,
        fate,
        EXPECTED.get(kind, "SUCCEEDED"),
        atomic=kind in ("atomic", "doomed"),
        yields=kind == "yielding",
        delayed=delayed,
    )


def committed(done: Iterable[Intent]) -> int:
    """How many runs a producer knows to be committed."""
    return sum(intent.fate == COMMITTED for intent in done)


def lines(notes: Path) -> list[str]:
    """The whole lines of a producer's notes."""
    text = notes.read_text() if notes.exists() else ""
    return text.splitlines()[: text.count("\n")]
