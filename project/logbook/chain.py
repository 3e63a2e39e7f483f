"""The chain of an aircraft's logbook: each leg's hash covers the hash of the leg before it.

A leg that is missing, entered twice or out of order therefore shows in every hash after it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

START = "0" * 64


class Entry(Protocol):
    """One entered leg, as far as the chain is concerned."""

    @property
    def number(self) -> int:
        """Place in the logbook, from 1."""

    @property
    def miles(self) -> int:
        """Distance of this leg."""

    @property
    def running_miles(self) -> int:
        """Distance of all legs up to and with this one."""

    @property
    def chain(self) -> str:
        """Hash of this leg, 64 hexadecimal digits."""

    @property
    def text(self) -> str:
        """What the hash covers of the leg itself."""


@dataclass(frozen=True, slots=True)
class Break:
    """The first entry at which a logbook does not add up, and how."""

    number: int
    message: str


def link(previous: str, text: str) -> str:
    """Hash of a leg whose predecessor has the hash `previous` (`START` for the first leg)."""
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def first_break(entries: Iterable[Entry]) -> Break | None:
    """Walk a logbook from its first leg; None when numbers, miles and hashes all agree."""
    previous, miles = START, 0
    for number, entry in enumerate(entries, start=1):
        miles += entry.miles
        previous = link(previous, entry.text)
        if entry.number != number:
            return Break(number, f"expected leg {number}, found leg {entry.number}")
        if entry.running_miles != miles:
            return Break(number, f"expected {miles} miles in all, found {entry.running_miles}")
        if entry.chain != previous:
            return Break(number, "the hash does not continue the leg before it")
    return None
