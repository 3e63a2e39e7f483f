"""Entering a leg at the end of its aircraft's logbook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from project.logbook import chain
from project.logbook.models import Aircraft, Leg


def enter(upload_id: int, tail: str, flight: Mapping[str, Any]) -> Leg:
    """Append one leg; `flight` holds the other fields of `Leg` that come from the file.

    Reads where the logbook ends and writes the next entry without a lock of its own: the caller
    runs alone for this aircraft, in one transaction.
    """
    aircraft, _ = Aircraft.objects.get_or_create(tail=tail)
    leg = Leg(aircraft=aircraft, upload_id=upload_id, number=aircraft.legs + 1, **flight)
    leg.running_miles = aircraft.miles + leg.miles
    leg.chain = chain.link(aircraft.chain, leg.text)
    leg.save(force_insert=True)
    Aircraft.objects.filter(pk=aircraft.pk).update(legs=leg.number, miles=leg.running_miles, chain=leg.chain)
    return leg
