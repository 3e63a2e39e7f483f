"""Names of the queue's keys and members in Redis. The scripts derive the same names from `base`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# One of each per queue, behind the base: `{PREFIX:queue}:ready`.
SINGLE: Final[Mapping[str, str]] = {
    "ready": "zset group -> rank: exactly the groups that can be served now; smaller first",
    "later": "zset group -> ms: groups that only time keeps, a back-off or the next token",
    "scheduled": "zset run -> ms: runs of the future, in no line until they are due",
    "groups": "hash group -> version, held, limit, rate of a group that somebody set something on; '' is the queue",
    "tokens": "zset group -> ms at which its token bucket is full again; only groups with a rate",
    "workers": "zset worker -> the queue's clock at its last beat",
    "slots": "hash worker -> pool slots, whether it is leaving, TIME of its last beat",
    "consumers": "hash consumer -> number of its last step, pid, clock when last seen, epoch, worker",
    "dead": "zset consumer -> 1 if its worker had announced its end: leases that are to be healed",
    "ended": "zset consumer or worker -> clock until which it must not come back",
    "kills": "set of runs that are cancelled by force, for the watchdogs",
    "bells": "hash: bells that are out, when the last one rang, the pause after a lost one, slots of all workers",
    "fence": "counter: the number of the last reservation; only grows",
    "clock": "the queue's own clock in ms, and TIME when it was last advanced",
    "epoch": "hash: the server's run_id, format, state (open or rebuild), number, since; gone when Redis lost it",
    "stats": "hash: counters of the queue, and the clock of each worker's last served step",
}
# One of each per group, run, consumer or duty: `{PREFIX:queue}:line:aircraft:N14228`. None is left behind.
FAMILIES: Final[Mapping[str, str]] = {
    "line:GROUP": "zset run -> order: the waiting runs of a group; equal orders by id",
    "held:GROUP": "set of the runs of a group that are leased",
    "run:ID": "hash: group, order, life, fence, hints, and who has it; only while there is something to say",
    "leases:CONSUMER": "set of the runs that a consumer holds",
    "turn:DUTY": "whose turn a periodic duty is; expires by itself",
}


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
