"""What a finished group or dedup key may be."""

from __future__ import annotations

from typing import Any, Final

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
