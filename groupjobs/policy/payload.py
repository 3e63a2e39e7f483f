"""Arguments as JSON: normalised so that what comes out of the row equals what went in, or refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from groupjobs.errors import RefusedArgument

DEEPEST: Final = 30  # MariaDB's JSON ends at 32 levels, and a run's arguments are two of them
LONGEST_NUMBER: Final = 4000  # binary digits; Python itself stops printing at 4,300 decimal ones
LARGEST_FLOAT: Final = 1e16  # from here on jsonb writes a float's shortest digits out as a whole number

Names = Sequence[str]

# Remedies by class name, looked up along the MRO: no import of what the project may not use.
REMEDIES: Final[Mapping[str, str]] = {
    "datetime": "pass value.isoformat()",
    "date": "pass value.isoformat()",
    "time": "pass value.isoformat()",
    "timedelta": "pass value.total_seconds()",
    "UUID": "pass str(value)",
    "Decimal": "pass str(value)",
    "Fraction": "pass str(value)",
    "PurePath": "pass str(value)",
    "Promise": "pass str(value)",
    "Model": "pass value.pk and load it in the job",
    "QuerySet": "pass a list of primary keys",
    "File": "save it and pass its name",
    "Enum": "pass value.value",
    "set": "pass sorted(value)",
    "frozenset": "pass sorted(value)",
    "complex": "pass [value.real, value.imag]",
    "generic": "pass value.item()",
    "ndarray": "pass value.tolist()",
    "BaseException": "pass str(value)",
}


def json_checked(
    job: str, args: Sequence[Any], kwargs: Mapping[str, Any], names: Names = ()
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as plain JSON values, equal after a round trip through any of the databases.

    Tuples and other sequences become lists, mappings dicts, UTF-8 bytes str. Everything else that is
    no JSON raises RefusedArgument, which names the argument (by `names`, where positional) and the remedy.
    """
    plain_args = [
        _plain(value, job, names[index] if index < len(names) else f"argument {index + 1}", DEEPEST)
        for index, value in enumerate(args)
    ]
    return plain_args, {_key(job, name, name): _plain(value, job, name, DEEPEST) for name, value in kwargs.items()}


def _plain(value: Any, job: str, path: str, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _text(value, job, path)
    if kind is int or kind is float:
        return _number(value, job, path)
    if depth == 0:
        path = path.partition("[")[0]
        raise refused(job, path, f"is nested deeper than {DEEPEST} levels", "flatten it, or store it and pass its key")
    if isinstance(value, Mapping):
        return {_key(job, path, key): _plain(item, job, f"{path}[{key!r}]", depth - 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return [_plain(item, job, f"{path}[{index}]", depth - 1) for index, item in enumerate(value)]
    return _scalar(value, job, path)


def _scalar(value: Any, job: str, path: str) -> Any:
    """Subclasses of JSON's scalars (an IntegerChoices, a SafeString) lose their class; the rest is refused."""
    if isinstance(value, str):
        return _text(str.__str__(value), job, path)
    if isinstance(value, int):
        return _number(int.__int__(value), job, path)
    if isinstance(value, float):
        return _number(float.__float__(value), job, path)
    if isinstance(value, bytes):
        try:
            return _text(value.decode(), job, path)
        except UnicodeDecodeError:
            raise refused(job, path, "is bytes that are not UTF-8", "pass base64 text") from None
    raise refused(job, path, f"is of type {type(value).__name__}, which is not JSON", _remedy(value))


def _text(value: str, job: str, path: str) -> str:
    if "\x00" in value:
        raise refused(job, path, "holds a NUL character, which a database cannot store", "remove it")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise refused(job, path, "holds a lone surrogate, which is no text", "remove or replace it") from None
    return value


def _number(value: Any, job: str, path: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise refused(job, path, f"is {value}, which is not JSON", "pass None or a text")
    if isinstance(value, float) and abs(value) >= LARGEST_FLOAT and Decimal(repr(value)) != value:
        raise refused(job, path, f"is {value}, which PostgreSQL's JSON does not keep exactly", "pass it as a text")
    if isinstance(value, int) and value.bit_length() > LONGEST_NUMBER:
        raise refused(job, path, "is a number of more than 1,200 digits", "pass it as a text")
    return value


def _key(job: str, path: str, key: Any) -> str:
    if not isinstance(key, str):
        raise refused(job, path, f"has the key {key!r}, and keys in JSON are text", f"use {str(key)!r} as the key")
    return str(_text(str.__str__(key), job, path))


def _remedy(value: Any) -> str:
    if isinstance(value, Enum):
        return REMEDIES["Enum"]
    for base in type(value).__mro__:
        if base.__name__ in REMEDIES:
            return REMEDIES[base.__name__]
    return "pass text, numbers, booleans, None, lists or dicts of them"


def refused(job: str, argument: str, problem: str, remedy: str) -> RefusedArgument:
    """The error for one argument of a call."""
    return RefusedArgument(f"{argument} {problem}; {remedy}", job=job, subject=argument)
