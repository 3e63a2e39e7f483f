"""The open queue, journal and gates of the core's tests."""

from __future__ import annotations

from tests.core.conftest import batches, gate, journal, no_outage, short_ttl, store

__all__ = ["batches", "gate", "journal", "no_outage", "short_ttl", "store"]
