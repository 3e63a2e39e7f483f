"""Names of the queue's keys and members in Redis. The scripts derive the same names from `base`."""

from __future__ import annotations

PLACES = ("ready", "later", "scheduled", "workers", "slots", "consumers", "dead", "ended", "bells", "kills")
RECORDS = ("groups", "tokens", "fence", "clock", "epoch", "stats")
FAMILIES = ("line", "held", "run", "leases", "turn")


def base(prefix: str, queue: str) -> str:
    """The base key: one hash tag, so that all keys of a queue share a slot."""
    if "{" in prefix or "}" in prefix or not f"{prefix}{queue}":
        raise ValueError(f"the prefix {prefix!r} cannot be part of a Redis hash tag: leave out braces")
    return f"{{{prefix}:{queue}}}"


def line_name(group: str, run_id: int) -> str:
    """Redis's name of a run's group: an ungrouped run ('') is a group of its own."""
    return group or f"\x00{run_id}"


def member(run: int) -> str:
    """A run's id as Redis holds it: twenty digits, so that ties of `order` sort by id."""
    if not 0 <= run < 2**63:
        raise ValueError(f"run id out of range: {run}")
    return f"{run:020d}"
