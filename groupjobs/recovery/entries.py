"""The second pass: what Redis knows, against rows read again; drops entries that have no live row."""

from __future__ import annotations

import time
from collections.abc import Sequence

from groupjobs import ledger
from groupjobs.recovery.leaks import mend_groups
from groupjobs.recovery.report import Report, Scope
from groupjobs.store import Store
from groupjobs.store.keys import line_name
from groupjobs.store.replies import Entry


def drop_dead_entries(store: Store, queue: str, scope: Scope, report: Report) -> None:
    """Drop entries whose row is terminal, gone, or of another group; never a lease of a living consumer."""
    cursor, began = "", time.monotonic()
    while scope.limit is None or report.moved() < scope.limit:
        page = store.entries(cursor)
        for start in range(0, len(page.entries), 500):
            _drop(store, queue, page.entries[start : start + 500], scope, report)
        cursor = page.cursor
        if not cursor or scope.spent(began):
            return


def _drop(store: Store, queue: str, known: Sequence[tuple[int, str]], scope: Scope, report: Report) -> None:
    live = ledger.live_among(queue, [run for run, _ in known])
    wrong = [(run, group) for run, group in known if not _belongs(run, group, live) and _in_scope(group, scope)]
    if not wrong:
        return
    snapshot = store.snapshot(wrong)
    entries = snapshot.entries
    live = ledger.live_among(queue, [run for run, _ in wrong])  # again: after Redis was asked
    found = [(r, g, entries[r]) for r, g in wrong if r in entries and not _belongs(r, g, live)]
    found = [(run, group, entry) for run, group, entry in found if entry.place != "leased" or entry.ghost]
    found = found if scope.limit is None else found[: max(0, scope.limit - report.moved())]
    dropped = len(found) if report.dry_run else _drop_all(store, found)
    report.count("dropped", dropped)
    for run, group, entry in found[: dropped if report.dry_run else len(found)]:
        report.detail(run, group, queue, "dropped", "its row is terminal or gone", entry.worker)
    mend_groups(store, queue, snapshot, report)


def _belongs(run: int, group: str, live: dict[int, str]) -> bool:
    return run in live and line_name(live[run], run) == group


def _in_scope(group: str, scope: Scope) -> bool:
    return scope.group is None or scope.group == group


def _drop_all(store: Store, found: Sequence[tuple[int, str, Entry]]) -> int:
    items = [(run, group, entry.fence, max(entry.life, entry.again)) for run, group, entry in found]
    return store.drop(items) if items else 0
