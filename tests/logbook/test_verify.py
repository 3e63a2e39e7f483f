"""The demo's verdict and the logbook's own check find each way in which a logbook can be wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from project.demo import verify
from project.demo.verify import Entered, Line, Verdict
from project.logbook import chain, flights

pytestmark = pytest.mark.once

DATA = Path(__file__).parents[2] / "project" / "data" / "flights_2013_w1.csv"
TAIL = "N730MQ"  # seventeen legs
BEFORE = ("1|an older file", "2|an older file")

Damage = Callable[[list[Line]], list[Line]]


class Entry(NamedTuple):
    number: int
    miles: int
    running_miles: int
    chain: str
    text: str


@pytest.fixture(scope="module")
def fleet() -> dict[str, list[Line]]:
    return verify.read_file(DATA, ())


def enter(lines: Iterable[Line], older: Iterable[str] = ()) -> list[Entered]:
    """Enter lines into an empty logbook, in the order given, as the application does."""
    digest, miles, legs = chain.START, 0, []
    given = [(Line(0, 100, text), text) for text in older] + [(line, None) for line in lines]
    for number, (line, text) in enumerate(given, start=1):
        digest, miles = chain.link(digest, line.text), miles + line.miles
        legs.append(Entered(line.line, number, line.miles, miles, digest, text))
    return legs


def judge(fleet: dict[str, list[Line]], damaged: list[Entered]) -> Verdict:
    logbooks = {tail: enter(lines) for tail, lines in fleet.items()}
    return verify.verify(fleet, {**logbooks, TAIL: damaged})


def counts(verdict: Verdict) -> tuple[int, int, int]:
    return verdict.lost, verdict.out_of_order, verdict.twice


def missing(lines: list[Line]) -> list[Line]:
    return lines[:5] + lines[6:]


def missing_at_the_end(lines: list[Line]) -> list[Line]:
    return lines[:-1]


def doubled(lines: list[Line]) -> list[Line]:
    return [*lines[:6], lines[5], *lines[6:]]


def doubled_much_later(lines: list[Line]) -> list[Line]:
    return [*lines, lines[0]]


def swapped(lines: list[Line]) -> list[Line]:
    return [*lines[:5], lines[6], lines[5], *lines[7:]]


def all_at_once(lines: list[Line]) -> list[Line]:
    return [lines[1], lines[0], lines[3], lines[3], *lines[4:]]


def test_the_whole_file_entered_in_order_is_good(fleet: dict[str, list[Line]]) -> None:
    verdict = judge(fleet, enter(fleet[TAIL], BEFORE))
    assert verdict.good
    assert (verdict.legs, *counts(verdict)) == (6091, 0, 0, 0)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (missing, (1, 0, 0)),
        (missing_at_the_end, (1, 0, 0)),
        (doubled, (0, 0, 1)),
        (doubled_much_later, (0, 0, 1)),
        (swapped, (0, 1, 0)),
        (all_at_once, (1, 1, 1)),
    ],
)
@pytest.mark.parametrize("older", [(), BEFORE])
def test_a_leg_lost_doubled_or_out_of_order_is_counted_and_its_aircraft_named(
    fleet: dict[str, list[Line]], damage: Damage, expected: tuple[int, int, int], older: tuple[str, ...]
) -> None:
    verdict = judge(fleet, enter(damage(fleet[TAIL]), older))
    assert counts(verdict) == expected
    assert verdict.complaints
    assert all(complaint.startswith(f"{TAIL}: ") for complaint in verdict.complaints)


def test_an_aircraft_without_any_leg_and_one_that_is_not_of_the_file(fleet: dict[str, list[Line]]) -> None:
    verdict = verify.verify({TAIL: fleet[TAIL]}, {"N1": enter([Line(9999, 1, "a leg of nowhere")])})
    assert counts(verdict) == (17, 0, 0)
    assert [complaint.split(":")[0] for complaint in verdict.complaints] == ["N1", TAIL]


@pytest.mark.parametrize("change", [{"number": 3}, {"running_miles": 1}, {"chain": "0" * 64}])
def test_a_leg_that_was_changed_afterwards_breaks_the_chain(
    fleet: dict[str, list[Line]], change: dict[str, int | str]
) -> None:
    legs = enter(fleet[TAIL])
    legs[8] = legs[8]._replace(**change)  # type: ignore[arg-type]
    verdict = judge(fleet, legs)
    assert verdict.complaints == [f"{TAIL}: the chain breaks at leg 9 (line {legs[8].line} of the file)"]


def test_a_leg_that_was_deleted_afterwards_breaks_the_chain_too(fleet: dict[str, list[Line]]) -> None:
    legs = enter(fleet[TAIL])
    verdict = judge(fleet, legs[:3] + legs[4:])
    assert counts(verdict) == (1, 0, 0)
    assert "the chain breaks at leg 4" in verdict.complaints[1]


def test_refused_lines_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_bytes(b"\r\n".join([*DATA.read_bytes().splitlines()[:4], b"\xff not a leg", b"", b"2013"]))
    found = verify.read_file(file, {5, 7})
    assert sorted(line.line for lines in found.values() for line in lines) == [2, 3, 4]


def entries(lines: Iterable[Line]) -> list[Entry]:
    texts = [line.text for line in lines]
    return [Entry(*leg[1:5], text) for leg, text in zip(enter(lines), texts, strict=True)]


def test_the_logbook_page_finds_what_was_changed(fleet: dict[str, list[Line]]) -> None:
    good = entries(fleet[TAIL])
    assert chain.first_break(good) is None
    assert chain.first_break([]) is None
    for position, damaged in enumerate([good[:2] + good[3:], [*good[:2], good[3], good[2], *good[4:]]]):
        found = chain.first_break(damaged)
        assert found is not None, position
        assert found.number == 3


def test_the_texts_of_the_file_are_those_of_the_import(fleet: dict[str, list[Line]]) -> None:
    legs = [leg for leg in flights.read(DATA.read_bytes()) if isinstance(leg, flights.Flight)]
    lines = {line.line: line for line in itertools.chain.from_iterable(fleet.values())}
    assert {leg.line: leg.miles for leg in legs} == {number: line.miles for number, line in lines.items()}
