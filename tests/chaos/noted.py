"""Reads the notes of producers back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.chaos.history import COMMITTED, ROLLED_BACK, UNKNOWN, Intent

EXPECTED = {"doomed": "FAILED", "poison": "ABANDONED"}


def intents(lines: Iterable[str], killed: float | None = None) -> Iterator[Intent]:
    """What one producer meant to enqueue, and what came of it; `killed`: when the producer's life ended.

    Where the commit's reply never came, a run that is there was committed before that was known.
    """
    calls: list[tuple[float, int, list[str]]] = []
    fates: dict[int, tuple[str, float | None]] = {}
    for note in map(json.loads, lines):
        if "fate" in note:
            fates[note["batch"]] = (note["fate"], note["at"])
        else:
            calls += [(note["at"], note["batch"], run) for run in note["runs"]]
    for called, batch, run in calls:
        yield _intent(called, run, *fates.get(batch, (UNKNOWN, killed)))


def _intent(called: float, run: Any, fate: str, at: float | None) -> Intent:
    token, group, kind, delayed = run
    return Intent(
        token,
        group,
        called,
        None if fate == ROLLED_BACK else at,
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
