"""Write how far runs have come. Progress is news, not truth: it is never part of a decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models.functions import Now

from groupjobs.ledger.database import alias

LENGTHS = {"message": 255, "phase": 100}


def write_progress(said: Mapping[int, Mapping[str, Any]]) -> None:
    """Update the progress rows of these runs with the last word of each."""
    from groupjobs.models import JobProgress

    for run, values in said.items():
        changes = {name: _plain(name, value) for name, value in values.items()}
        JobProgress.objects.using(alias()).filter(run_id=run).update(updated_at=Now(), **changes)


def _plain(name: str, value: Any) -> Any:
    length = LENGTHS.get(name)
    return value if length is None else str(value).replace("\0", "")[:length]
