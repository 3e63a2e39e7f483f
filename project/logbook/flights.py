"""The file of flights: which lines are legs, and what is wrong with the others.

Pure: bytes in, `Flight` and `BadLine` out, in the order of the file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

COLUMNS = (
    "flight_date",
    "sched_dep_time",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "distance_miles",
    "air_time_min",
)


class FileRefused(ValueError):
    """The file as a whole is not a list of flights; the message says why."""


class LineRefused(ValueError):
    """One line is not a flight; the message says why."""


@dataclass(frozen=True, slots=True)
class Flight:
    """One leg as the file has it; `line` counts from 1, the header."""

    line: int
    date: str
    departure: str
    carrier: str
    number: str
    tail: str
    origin: str
    dest: str
    miles: int
    minutes: int | None


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is left out, and why."""

    line: int
    message: str


def read(content: bytes, *, after: int = 1) -> Iterator[Flight | BadLine]:
    """Every line of the file that is neither the header nor blank and comes after line `after`.

    Raises FileRefused when the file is empty, not text, or its header lacks columns.
    """
    lines = content.splitlines()
    header = _header(lines)
    for line, raw in enumerate(lines[after:], start=after + 1):
        if raw.strip():
            yield _flight_or_bad(line, raw, header)


def _header(lines: Sequence[bytes]) -> list[str]:
    if not any(line.strip() for line in lines):
        raise FileRefused("the file is empty")
    try:
        header = [name.lower() for name in _fields(lines[0].removeprefix(b"\xef\xbb\xbf"))]
    except LineRefused as problem:
        raise FileRefused(f"line 1 (the header): {problem}") from None
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise FileRefused(f"line 1 (the header): missing columns: {', '.join(missing)}")
    doubled = sorted({name for name in COLUMNS if header.count(name) > 1})
    if doubled:
        raise FileRefused(f"line 1 (the header): columns named twice: {', '.join(doubled)}")
    return header


def _flight_or_bad(line: int, raw: bytes, header: Sequence[str]) -> Flight | BadLine:
    try:
        return _flight(line, _fields(raw), header)
    except LineRefused as problem:
        return BadLine(line, str(problem))


def _fields(raw: bytes) -> list[str]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LineRefused(f"not UTF-8 text (byte {error.start + 1} of the line)") from None
    if any(not character.isprintable() and character != "\t" for character in text):
        raise LineRefused("characters that cannot be printed")
    try:
        # Each line by itself: a quote that is never closed costs its own line only.
        return [field.strip() for field in next(csv.reader([text], strict=True))]
    except csv.Error as error:
        raise LineRefused(f"not CSV: {error}") from None


def _flight(line: int, fields: Sequence[str], header: Sequence[str]) -> Flight:
    if [field.lower() for field in fields] == list(header):
        raise LineRefused("the header again")
    if len(fields) != len(header):
        relation = "short" if len(fields) < len(header) else "long"
        raise LineRefused(f"too {relation}: {len(fields)} fields, the header has {len(header)}")
    row = dict(zip(header, fields, strict=True))
    return Flight(
        line=line,
        date=_day(row),
        departure=_checked(row, "sched_dep_time", r"(?:[01]\d|2[0-3])[0-5]\d|2400", "a time of the form HHMM"),
        carrier=_checked(row, "carrier", r"[A-Z0-9]{2,3}", "an airline code"),
        number=_checked(row, "flight", r"\d{1,5}", "a flight number"),
        tail=_checked(row, "tailnum", r"[A-Z0-9-]{1,12}", "a tail number"),
        origin=_checked(row, "origin", r"[A-Z0-9]{3,4}", "an airport code"),
        dest=_checked(row, "dest", r"[A-Z0-9]{3,4}", "an airport code"),
        miles=int(_checked(row, "distance_miles", r"\d{1,6}", "a whole number of miles")),
        minutes=_minutes(row),
    )


def _minutes(row: Mapping[str, str]) -> int | None:
    value = _checked(row, "air_time_min", r"\d{0,5}", "a whole number of minutes")
    return int(value) if value else None


def _checked(row: Mapping[str, str], column: str, pattern: str, meaning: str) -> str:
    value = row[column]
    if re.fullmatch(pattern, value, re.ASCII):
        return value
    if not value:
        raise LineRefused(f"{column} is empty")
    raise LineRefused(f"{column} is not {meaning}: {_short(value)}")


def _day(row: Mapping[str, str]) -> str:
    value = _checked(row, "flight_date", r"\d{4}-\d\d-\d\d", "a date of the form YYYY-MM-DD")
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise LineRefused(f"flight_date is not a day of the calendar: {_short(value)}") from None


def _short(value: str) -> str:
    return repr(value if len(value) <= 40 else value[:39] + "…")
