"""Prune runs that ended longer ago than `RETENTION` keeps them."""

from __future__ import annotations

from groupjobs import conf, ledger
from groupjobs.ledger.pruning import BATCH


def prune(queue: str = "", dry_run: bool = False, limit: int | None = None) -> dict[str, int]:
    """Delete what is old in a queue ('' is all), up to `limit` runs; answers how many of each status.

    Never deletes a live run, one of a held group, or an abandonment that is not reported yet. One commit for
    each few hundred runs. `dry_run` only counts.
    """
    counts: dict[str, int] = {}
    for status, seconds in sorted(conf.current().retention.items()):
        if seconds is None:
            continue
        left = None if limit is None else limit - sum(counts.values())
        counts[status] = _count(status, seconds, queue, left) if dry_run else _prune(status, seconds, queue, left)
    return counts


def _count(status: str, seconds: float, queue: str, limit: int | None) -> int:
    found = ledger.count_old(status, seconds, queue)
    return found if limit is None else min(found, limit)


def _prune(status: str, seconds: float, queue: str, limit: int | None) -> int:
    pruned = 0
    while limit is None or pruned < limit:
        batch = BATCH if limit is None else min(BATCH, limit - pruned)
        found = ledger.prune(status, seconds, queue, batch)
        pruned += found
        if found < batch:
            break
    return pruned
