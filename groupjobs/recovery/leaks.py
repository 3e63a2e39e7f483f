"""Groups that nothing would ever move again: held by a run that nobody has, or in none of the lists."""

from __future__ import annotations

from groupjobs.recovery.report import Report
from groupjobs.store import Store
from groupjobs.store.replies import GroupState, Snapshot

MOST = 500  # runs that one snapshot may be asked for


def mend_groups(store: Store, queue: str, snapshot: Snapshot, report: Report) -> None:
    """Name and mend the groups of a snapshot that are stuck; what is held by a ghost is another's matter."""
    for group, (run, why) in _broken(store, snapshot).items():
        report.count("released")
        report.detail(run, group, queue, "released", why)
        if not report.dry_run:
            store.reap(group=group)


def _broken(store: Store, snapshot: Snapshot) -> dict[str, tuple[int, str]]:
    idle = {group for group, state in snapshot.groups.items() if _idle(state)}
    strays = {run: group for group, state in snapshot.groups.items() for run in state.strays}
    asked = [(run, group) for run, group in strays.items() if run not in snapshot.entries][:MOST]
    entries = {**snapshot.entries, **(store.snapshot(asked).entries if asked else {})}
    nobody = {run for run in strays if run not in entries or entries[run].place != "leased"}
    held = {strays[run]: (run, "held by a run that nobody has") for run in sorted(nobody)}
    return dict.fromkeys(sorted(idle), (0, "neither ready nor waiting for a time")) | held


def _idle(state: GroupState) -> bool:
    waits = state.ready or state.later_ms is not None or state.held_flag
    return state.waiting > 0 and not waits and not state.held
