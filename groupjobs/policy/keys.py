"""What a finished group or dedup key may be, and how a person names runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from groupjobs.errors import Refused

LARGEST_ID: Final = 2**63 - 1
LONGEST_KEY: Final = 255  # characters; the column's length


def checked_key(value: Any) -> str:
    """The key, or ValueError with what is wrong about it."""
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {value!r}")
    if not value:
        raise ValueError("is empty; give a text, or None for no group")
    if len(value) > LONGEST_KEY:
        raise ValueError(f"has {len(value)} characters, and at most {LONGEST_KEY} are allowed: {value[:40]!r}...")
    if "\x00" in value:
        raise ValueError(f"holds a NUL character: {value!r}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"holds a lone surrogate: {value!r}")
    return str.__str__(value)


def checked_ids(runs: Iterable[int | str]) -> list[int]:
    """Ids of runs, each once: whole numbers, or their digits as results have them. Refused for anything else."""
    if isinstance(runs, str | bytes | Mapping) or not isinstance(runs, Iterable):
        raise Refused(f"runs must be a list of ids, not {runs!r}; put a single one into a list", subject="runs")
    return list(dict.fromkeys(map(_id, runs)))


def _id(run: Any) -> int:
    digits = isinstance(run, str) and run.isascii() and run.isdigit()
    if isinstance(run, bool) or not (digits or isinstance(run, int)):
        raise Refused(f"a run is named by its id, a whole number, not by {run!r}", subject="runs")
    return min(int(run), LARGEST_ID)  # no run has it, and a database can be asked for it


def checked_text(text: Any) -> str:
    """A person's words as every database takes them: no NUL, no lone surrogate."""
    return str(text).replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
