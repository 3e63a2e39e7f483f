"""A pytest fixture; in a conftest.py: `pytest_plugins = ["groupjobs.testing.fixtures"]`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from groupjobs import testing


@pytest.fixture
def groupjobs() -> Iterator[ModuleType]:
    """`groupjobs.testing`, and no Redis and no broker during the test; ask for the database as usual."""
    with testing.in_memory():
        yield testing
