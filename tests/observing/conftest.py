"""The open queue of the core's tests."""

from __future__ import annotations

from tests.core.conftest import journal, no_outage, short_ttl, store

__all__ = ["journal", "no_outage", "short_ttl", "store"]
