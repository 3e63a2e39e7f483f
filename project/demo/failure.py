"""Why a demo did not end well."""

from __future__ import annotations


class DemoFailed(Exception):
    """The message says what went wrong, for a person; it may have several lines."""
