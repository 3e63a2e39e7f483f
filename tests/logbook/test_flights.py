"""The file check: which lines are legs, and what is said about the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from project.logbook import flights
from project.logbook.flights import BadLine, FileRefused, Flight

HEADER = ",".join(flights.COLUMNS)
GOOD = "2013-01-01,0515,UA,1545,N14228,EWR,IAH,1400,227"
pytestmark = pytest.mark.once

DATA = Path(__file__).parents[2] / "project" / "data" / "flights_2013_w1.csv"


def read(*lines: str | bytes, header: str = HEADER, end: bytes = b"\n") -> list[Flight | BadLine]:
    encoded = [line if isinstance(line, bytes) else line.encode() for line in (header, *lines)]
    return list(flights.read(end.join(encoded)))


def message(line: str | bytes) -> str:
    before, bad, after = read(GOOD, line, GOOD)
    assert isinstance(before, Flight)
    assert isinstance(after, Flight)
    assert after.line == 4
    assert isinstance(bad, BadLine)
    assert bad.line == 3
    return bad.message


def test_the_bundled_file_is_whole() -> None:
    found = list(flights.read(DATA.read_bytes()))
    assert len(found) == 6091
    assert len({leg.tail for leg in found if isinstance(leg, Flight)}) == 2048
    assert found[0] == Flight(2, "2013-01-01", "0515", "UA", "1545", "N14228", "EWR", "IAH", 1400, 227)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2013-01-01,0515,UA,1545,N14228", "too short: 5 fields, the header has 9"),
        (GOOD + ",9", "too long: 10 fields, the header has 9"),
        (GOOD.replace("2013-01-01", "01/01/2013"), "flight_date is not a date of the form YYYY-MM-DD: '01/01/2013'"),
        (GOOD.replace("2013-01-01", "2013-02-30"), "flight_date is not a day of the calendar: '2013-02-30'"),
        (GOOD.replace("2013-01-01", ""), "flight_date is empty"),
        (GOOD.replace("0515", "2561"), "sched_dep_time is not a time of the form HHMM: '2561'"),
        (GOOD.replace("1400", "far"), "distance_miles is not a whole number of miles: 'far'"),
        (GOOD.replace("1400", "-5"), "distance_miles is not a whole number of miles: '-5'"),
        (GOOD.replace("1400", "١٤"), "distance_miles is not a whole number of miles: '١٤'"),
        (GOOD.replace("1400", ""), "distance_miles is empty"),
        (GOOD.replace("227", "NaN"), "air_time_min is not a whole number of minutes: 'NaN'"),
        (GOOD.replace("N14228", ""), "tailnum is empty"),
        (GOOD.replace("N14228", "  "), "tailnum is empty"),
        (GOOD.replace("N14228", "N/1"), "tailnum is not a tail number: 'N/1'"),
        (HEADER, "the header again"),
        (GOOD.replace("UA", "\0"), "characters that cannot be printed"),
    ],
)
def test_a_bad_line_is_named_and_the_others_go_on(line: str, expected: str) -> None:
    assert message(line) == expected


def test_a_line_that_is_not_utf_8() -> None:
    assert message(GOOD.encode().replace(b"UA", b"\xff")) == "not UTF-8 text (byte 17 of the line)"


def test_a_quote_that_is_never_closed_costs_its_own_line_only() -> None:
    assert message(GOOD.replace("UA", '"UA')).startswith("not CSV: ")


def test_a_very_long_value_is_shortened_in_the_message() -> None:
    assert len(message(GOOD.replace("N14228", "N" * 100_000))) < 100


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends_blanks_and_an_unknown_air_time(end: bytes) -> None:
    first, second = read("", GOOD, "   ", GOOD.replace("227", ""), "", end=end)
    assert isinstance(first, Flight)
    assert isinstance(second, Flight)
    assert (first.line, second.line) == (3, 5)
    assert (first.minutes, second.minutes) == (227, None)


def test_columns_may_come_in_another_order_with_others_beside_them_and_a_byte_order_mark() -> None:
    columns = [*reversed(flights.COLUMNS), "remark"]
    values = [*reversed(GOOD.split(",")), '"late, as usual"']
    assert read(",".join(values), header="\ufeff" + ",".join(columns)) == read(GOOD)


def test_reading_goes_on_after_a_line() -> None:
    content = "\n".join([HEADER, GOOD, "bad", GOOD, GOOD]).encode()
    everything = list(flights.read(content))
    assert list(flights.read(content, after=3)) == everything[2:]
    assert list(flights.read(content, after=5)) == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (GOOD.encode(), "line 1 (the header): missing columns: flight_date, sched_dep_time"),
        (HEADER.replace("tailnum,", "").encode(), "line 1 (the header): missing columns: tailnum"),
        (f"{HEADER},tailnum".encode(), "line 1 (the header): columns named twice: tailnum"),
        (HEADER.encode("utf-16"), "line 1 (the header): not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n\0\0", "line 1 (the header): not UTF-8 text"),
        (b"\0\0\0\0\n", "line 1 (the header): characters that cannot be printed"),
    ],
)
def test_a_file_that_is_no_list_of_flights_is_refused(content: bytes, expected: str) -> None:
    with pytest.raises(FileRefused) as refused:
        list(flights.read(content))
    assert str(refused.value).startswith(expected)
