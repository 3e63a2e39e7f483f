"""No loss is counted unless its worker was killed, or stopped for so long that it counts as dead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tests.chaos.history import Change, History, Kill, Stop, Violation

TOLERANCE = 0.5  # seconds: the row's times come from another clock


def unexplained(history: History) -> Iterator[Violation]:
    """Kind "unexplained": a counted loss without a kill or a stop of the worker that had the run."""
    births = _births(history)
    for run, changes in history.changed.items():
        begun = 0.0
        for change in changes:
            if change.lost and not _explained(history, change, begun, births.get(change.worker, begun)):
                yield Violation("unexplained", _text(change), (run,))
            if change.after == "RUNNING":
                begun = change.at


def _births(history: History) -> Mapping[str, float]:
    """When each identity of a worker was first written into a row."""
    births: dict[str, float] = {}
    for changes in history.changed.values():
        for one, other in pairwise(changes):
            births[other.worker] = min(one.at, births.get(other.worker, one.at))
    return births


def _text(change: Change) -> str:
    return f"run {change.run} lost its attempt under fence {change.fence_before} on {change.worker} for no reason"


def main_of(worker: str) -> int:
    """The process id in an identity "host:pid:incarnation"."""
    return int(worker.rsplit(":", 2)[1])


def unwatched(history: History) -> list[int]:
    """Runs that were served under an identity that is not their worker's, so that no watchdog beat for them."""
    found = []
    for run, changes in history.changed.items():
        mains = {attempt.fence: attempt.main for attempt in history.tried.get(run, ())}
        begun = [change for change in changes if change.before == "RUNNING" and change.fence_before in mains]
        found += [run for change in begun if main_of(change.worker) != mains[change.fence_before]]
    return found


def _explained(history: History, change: Change, begun: float, born: float) -> bool:
    """`begun`: when the lost attempt's row was written, `born`: when its worker's identity was first seen.

    A worker that was stopped for long is judged dead under its identity for good: a stop while it bore it
    explains every later loss. One process of its pool is only as dead as it was when it was stopped.
    """
    main = main_of(change.worker)
    tried = [attempt for attempt in history.tried.get(change.run, ()) if attempt.fence == change.fence_before]
    pid = tried[0].pid if tried else None
    kills = (kill for kill in history.kills if kill.main == main and _kills(kill, pid))
    if any(begun - TOLERANCE <= kill.at <= change.at + TOLERANCE for kill in kills):
        return True
    for stop in history.stops:
        since = begun if stop.kind == "child" else born
        during = stop.start <= change.at + TOLERANCE and stop.end >= since - TOLERANCE
        if stop.main == main and during and _stops(stop, pid, history.ttl):
            return True
    return False


def _kills(kill: Kill, pid: int | None) -> bool:
    return kill.kind in ("main", "both") or (kill.kind in ("child", "self") and pid in (None, kill.pid))


def _stops(stop: Stop, pid: int | None, ttl: float) -> bool:
    long = stop.end - stop.start >= 0.5 * ttl
    return long and (stop.kind != "child" or pid in (None, stop.pid))


CHECKS: Sequence = (unexplained,)
