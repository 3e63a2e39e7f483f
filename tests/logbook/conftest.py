"""Files of flights and their uploads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from project.logbook import flights, views
from project.logbook.models import Upload

DATA = Path(__file__).parents[2] / "project" / "data" / "flights_2013_w1.csv"

Save = Callable[[bytes], Upload]


@pytest.fixture(scope="session")
def flight_file() -> bytes:
    """The bundled file: 6,091 legs of 2,048 aircraft."""
    return DATA.read_bytes()


@pytest.fixture(scope="session")
def bad_file() -> bytes:
    """Three good legs of two aircraft between three bad lines."""
    return b"\n".join(
        [
            ",".join(flights.COLUMNS).encode(),
            b"2013-01-01,0515,UA,1545,N14228,EWR,IAH,1400,227",
            b"2013-01-01,0529,UA,1714",
            b"2013-01-01,0540,AA,1141,N619AA,JFK,MIA,1089,160",
            b"2013-13-01,0545,B6,725,N804JB,JFK,BQN,1576,183",
            b"2013-01-01,0600,B6,79,,JFK,TPA,1005,",
            b"2013-01-02,0515,UA,1545,N14228,EWR,IAH,1400,",
        ]
    )


@pytest.fixture
def save() -> Save:
    """Saves bytes as the upload view does."""
    return lambda content: views.save_upload(SimpleUploadedFile("flights.csv", content))
