"""The verdict: every aircraft's logbook against the file, computed here on its own.

Nothing of the import or of the chain's code is used: the file is read again with the csv module,
and the hashes are computed again from its lines. Only the lines that the import refused are left out.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ORDER = ("flight_date", "sched_dep_time", "carrier", "flight", "tailnum", "origin", "dest")


class Line(NamedTuple):
    """A line of the file: its number, its miles, and the text that its hash covers."""

    line: int
    miles: int
    text: str


class Entered(NamedTuple):
    """A leg as the database has it; `text` is None for a leg of the file under test."""

    line: int
    number: int
    miles: int
    running_miles: int
    chain: str
    text: str | None = None


@dataclass
class Verdict:
    """Counts over all aircraft, and a sentence for each aircraft that is wrong."""

    legs: int = 0
    lost: int = 0
    out_of_order: int = 0
    twice: int = 0
    complaints: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether every logbook is exactly the file."""
        return not self.complaints


def read_file(path: Path, refused: Collection[int]) -> dict[str, list[Line]]:
    """The legs of each aircraft in the order of the file, without the refused lines."""
    fleet: dict[str, list[Line]] = {}
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header = [name.strip().lower() for name in next(csv.reader([file.readline()]))]
        for number, text in enumerate(file, start=2):
            if number not in refused and text.strip():
                row = dict(zip(header, next(csv.reader([text])), strict=False))
                fleet.setdefault(row["tailnum"].strip(), []).append(_line(number, row))
    return fleet


def _line(number: int, row: Mapping[str, str]) -> Line:
    miles = int(row["distance_miles"])
    minutes = row["air_time_min"].strip()
    values = [str(number), *(row[name].strip() for name in ORDER), str(miles), str(int(minutes)) if minutes else ""]
    return Line(number, miles, "|".join(values))


def verify(expected: Mapping[str, Sequence[Line]], entered: Mapping[str, Sequence[Entered]]) -> Verdict:
    """Compare the file's legs with the logbooks, aircraft by aircraft."""
    verdict = Verdict(legs=sum(map(len, expected.values())))
    for tail in sorted({*expected, *entered}):
        for complaint in _complaints(verdict, expected.get(tail, ()), entered.get(tail, ())):
            verdict.complaints.append(f"{tail}: {complaint}")
    return verdict


def _complaints(verdict: Verdict, lines: Sequence[Line], legs: Sequence[Entered]) -> Iterator[str]:
    mine = [leg.line for leg in legs if leg.text is None]
    wanted, times = {line.line for line in lines}, Counter(mine)
    first_times = list(dict.fromkeys(line for line in mine if line in wanted))
    lost = sorted(wanted - times.keys())
    twice = sorted(line for line, count in times.items() if count > 1)
    astray = [line for before, line in pairwise(first_times) if line < before]
    foreign = sorted(times.keys() - wanted)
    verdict.lost += len(lost)
    verdict.twice += sum(times[line] - 1 for line in twice)
    verdict.out_of_order += len(astray)
    for word, found in (("lost", lost), ("twice", twice), ("out of order", astray), ("not of the file", foreign)):
        if found:
            yield f"{word}: line {', '.join(map(str, found))}"
    yield from _breaks({line.line: line for line in lines}, legs)


def _breaks(lines: Mapping[int, Line], legs: Iterable[Entered]) -> Iterator[str]:
    """The first place where numbers, miles or hashes do not add up, with the hash computed from the file's line."""
    digest, miles = "0" * 64, 0
    for number, leg in enumerate(legs, start=1):
        line = lines.get(leg.line) if leg.text is None else Line(leg.line, leg.miles, leg.text)
        if line is None:
            return
        miles += line.miles
        digest = hashlib.sha256(f"{digest}\n{line.text}".encode()).hexdigest()
        if (leg.number, leg.running_miles, leg.chain) != (number, miles, digest):
            yield f"the chain breaks at leg {number} (line {leg.line} of the file)"
            return
