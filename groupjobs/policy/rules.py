"""One rule per option: the normalised value, or ValueError with what it must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from inspect import Signature, isclass, signature
from typing import Any, Final

from groupjobs.errors import Refused
from groupjobs.policy.keys import checked_key
from groupjobs.policy.payload import json_checked

Rule = Callable[[Any], Any]

LARGEST_INTEGER: Final = 2**31 - 1
LARGEST_ORDER: Final = 2**53  # beyond it Redis's sorted sets lose digits
LONGEST_DURATION: Final = 10 * 365.25 * 86400.0
LONGEST_NAME: Final = 255
LONGEST_QUEUE: Final = 100


def whole(least: int, most: int) -> Rule:
    """A rule for whole numbers in a range; booleans are none."""

    def rule(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"must be a whole number between {least} and {most}")
        return int(value)

    return rule


def choice(*values: str) -> Rule:
    """A rule for one of a few words."""

    def rule(value: Any) -> str:
        if not isinstance(value, str) or value not in values:
            raise ValueError(f"must be {' or '.join(map(repr, values))}")
        return str.__str__(value)

    return rule


def flag(value: Any) -> bool:
    """True or False, nothing that merely counts as one."""
    if not isinstance(value, bool):
        raise ValueError("must be True or False")
    return value


def text(longest: int) -> Rule:
    """A rule for printable text of at most so many characters."""

    def rule(value: Any) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
            raise ValueError(f"must be printable text of 1 to {longest} characters")
        return str.__str__(value)

    return rule


def seconds(value: Any) -> float:
    """A duration as seconds: a finite number from 0, or a timedelta."""
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= LONGEST_DURATION:
        raise ValueError("must be seconds from 0 (up to ten years) or a timedelta")
    return float(number)


def limit(value: Any) -> float | None:
    """A duration above 0, or None for no limit."""
    if value is None:
        return None
    duration = seconds(value)
    if not duration > 0:
        raise ValueError("must be longer than 0 seconds, or None")
    return duration


def moment(value: Any) -> datetime | None:
    """A datetime or None; whether it must be aware is for who knows the settings."""
    if value is not None and not isinstance(value, datetime):
        raise ValueError("must be a datetime")
    return value


def expiry(value: Any) -> float | datetime | None:
    """Seconds from the enqueue, or a datetime, or None."""
    return value if isinstance(value, datetime) else limit(value)


def key(value: Any) -> Any:
    """A template, a callable or None."""
    if value is None or callable(value) or (isinstance(value, str) and value and "\x00" not in value):
        return value
    raise ValueError("must be a template like 'order:{number}', a callable, or None")


def literal(value: Any) -> str | None:
    """A finished group; '' for ungrouped, None for none given."""
    return value if value is None or value == "" else checked_key(value)


def exceptions(value: Any) -> tuple[type[Exception], ...]:
    """One exception class or several; an empty sequence retries on nothing."""
    classes = (value,) if isclass(value) else tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isclass(item) and issubclass(item, Exception) for item in classes):
        raise ValueError("must be an exception class or a list of them")
    return classes


def pauses(value: Any) -> Any:
    """Seconds, a non-empty sequence of seconds, a callable of the number of failures, or None."""
    if value is None or callable(value):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return tuple(seconds(item) for item in value)
    try:
        return seconds(value)
    except ValueError:
        raise ValueError("must be seconds, a list of seconds, a callable that answers seconds, or None") from None


def hook(value: Any) -> Any:
    """A callable of (run, reason), or None."""
    if value is None:
        return None
    if not callable(value):
        raise ValueError("must be a callable of (run, reason), or None")
    try:
        _signature(value).bind(None, "")
    except TypeError:
        raise ValueError("must take two positional arguments, (run, reason)") from None
    return value


def _signature(function: Callable[..., Any]) -> Signature:
    try:
        return signature(function)
    except ValueError:  # a builtin that does not tell
        return signature(lambda *args, **kwargs: None)


def mapping(value: Any) -> dict[str, Any]:
    """Labels: names to JSON values."""
    if not isinstance(value, Mapping):
        raise ValueError("must be a dict of names and JSON values")
    try:
        return json_checked("", (), value)[1]
    except Refused as refusal:
        raise ValueError(f"must be JSON ({refusal.problem})") from None


def names(value: Any) -> tuple[str, ...]:
    """Former names of a job: one or several."""
    items = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (None,)
    return tuple(text(LONGEST_NAME)(item) for item in items)


RULES: Final[Mapping[str, Rule]] = {
    "queue_name": text(LONGEST_QUEUE),
    "priority": whole(-100, 100),
    "run_after": moment,
    "group": key,
    "literal_group": literal,
    "order": whole(-LARGEST_ORDER, LARGEST_ORDER),
    "max_attempts": whole(1, LARGEST_INTEGER),
    "retry_on": exceptions,
    "backoff": pauses,
    "on_retry": choice("block", "yield"),
    "max_losses": whole(0, LARGEST_INTEGER),
    "after_failure": choice("continue", "hold", "cancel"),
    "atomic": flag,
    "time_limit": limit,
    "soft_time_limit": limit,
    "expires": expiry,
    "dedup": key,
    "on_duplicate": choice("skip", "replace", "coalesce"),
    "on_abandoned": hook,
    "labels": mapping,
    "name": text(LONGEST_NAME),
    "aliases": names,
    "takes_context": flag,
}
