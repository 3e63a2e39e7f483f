"""Tests that try to break the core: rows, enqueue, consumer, recovery."""
