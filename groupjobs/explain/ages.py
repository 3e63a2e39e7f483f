"""Durations as people read them. Ages are taken between two times of the database, never from this machine's clock."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _


def seconds_between(earlier: datetime | None, later: datetime | None) -> float | None:
    """Seconds from one moment to another; None when either is unknown."""
    return None if earlier is None or later is None else (later - earlier).total_seconds()


def duration(seconds: float | None) -> str:
    """Seconds in the two largest units: "0.4 s", "12 s", "3 min", "2 h 10 min", "5 d 3 h"; a dash when unknown."""
    if seconds is None:
        return "-"
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return _("%s s") % f"{seconds:.1f}".removesuffix(".0")
    if seconds < 59.5:
        return _("%s s") % round(seconds)
    minutes = max(1, int(seconds // 60))
    if minutes < 60:
        return _("%s min") % minutes
    if minutes < 48 * 60:
        return _pair(_("%s h"), minutes // 60, _("%s min"), minutes % 60)
    return _pair(_("%s d"), minutes // 1440, _("%s h"), minutes % 1440 // 60)


def _pair(large: str, much: int, small: str, little: int) -> str:
    return large % much + (f" {small % little}" if little else "")
