"""Every committed run ends exactly once and as it should; what was rolled back never begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.chaos.history import COMMITTED, OK, Change, History, Row, Violation

LIVE = ("READY", "RUNNING")
TOLERANCE = 0.05  # seconds: the row's times come from another clock


def committed_runs(history: History) -> Iterator[Violation]:
    """Kind "lost": a committed run without a row, or with another end than its job deserves."""
    rows = {row.token: row for row in history.rows}
    for intent in history.intents:
        row = rows.get(intent.token)
        if row is None and intent.fate == COMMITTED:
            yield Violation("lost", f"{intent.token} was committed and has no row")
        elif row is not None and row.status not in (*LIVE, intent.expected):
            yield Violation("lost", f"run {row.run} ended {row.status}, not {intent.expected}", (row.run,))
        elif row is not None and row.status == "SUCCEEDED" and not _ran_to_its_end(history, row):
            yield Violation(
                "lost", f"run {row.run} SUCCEEDED under fence {row.fence}, which no handler ended", (row.run,)
            )


def _ran_to_its_end(history: History, row: Row) -> bool:
    return any(tried.fence == row.fence and tried.outcome == OK for tried in history.tried.get(row.run, ()))


def stuck_runs(history: History) -> Iterator[Violation]:
    """Kind "stuck": live rows after the last fault and a generous time."""
    for row in history.rows:
        if row.status in LIVE:
            yield Violation("stuck", f"run {row.run} is still {row.status}", (row.run,))


def phantoms(history: History) -> Iterator[Violation]:
    """Kind "phantoms": a run began that was never committed."""
    tokens = {row.token for row in history.rows}
    for run, attempts in history.tried.items():
        if attempts[0].token not in tokens:
            yield Violation("phantoms", f"run {run} ({attempts[0].token}) began and has no row", (run,))


def terminal_once(history: History) -> Iterator[Violation]:
    """Kind "late": a second end, an end under an older fence, a fence that sank, a row that came back."""
    for run, changes in history.changed.items():
        for before, change in zip([None, *changes], changes, strict=False):
            if problem := _wrong(before, change):
                yield Violation("late", f"run {run}: {problem}", (run,))


def _wrong(previous: Change | None, change: Change) -> str:
    if change.before not in LIVE:
        return f"{change.before} became {change.after}"
    if change.fence < change.fence_before:
        return f"fence {change.fence_before} sank to {change.fence}"
    if previous is not None and (previous.after, previous.fence) != (change.before, change.fence_before):
        return f"was {previous.after} under {previous.fence}, then {change.before} under {change.fence_before}"
    return ""


def early_ends(history: History) -> Iterator[Violation]:
    """Kind "late": a row SUCCEEDED while its attempt still ran, so by the word of another, older one."""
    for run, changes in history.changed.items():
        ends = {tried.fence: tried.end for tried in history.tried.get(run, ())}
        last = changes[-1]
        end = ends.get(last.fence)
        if last.after == "SUCCEEDED" and last.at and end is not None and end > last.at + TOLERANCE:
            yield Violation("late", f"run {run} SUCCEEDED {end - last.at:.3f} s before its handler ended", (run,))


def doubled(history: History) -> Iterator[Violation]:
    """Kind "overlaps": one reservation executed twice."""
    for run, attempts in history.tried.items():
        fences = [attempt.fence for attempt in attempts]
        for fence in sorted({fence for fence in fences if fences.count(fence) > 1}):
            yield Violation("overlaps", f"run {run} was executed twice under fence {fence}", (run,))


CHECKS: Sequence = (committed_runs, stuck_runs, phantoms, terminal_once, early_ends, doubled)
