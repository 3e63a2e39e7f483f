"""Within a group: one at a time, and in order."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from tests.chaos.history import DOOMED, OK, Attempt, History, Intent, Violation


def attempts_by_group(history: History, zombies: bool = False) -> Mapping[str, list[Attempt]]:
    """Attempts of known runs by group, in the order of their begins; zombies are left out unless asked for."""
    groups: dict[str, list[Attempt]] = defaultdict(list)
    for attempts in history.tried.values():
        intent = history.by_token.get(attempts[0].token)
        if intent is not None and intent.group:
            groups[intent.group] += [attempt for attempt in attempts if zombies or not history.is_zombie(attempt)]
    for found in groups.values():
        found.sort(key=lambda attempt: attempt.begin)
    return groups


def overlaps(history: History) -> Iterator[Violation]:
    """Kind "overlaps": an attempt began while another one of its group gave signs of life later on."""
    for group, attempts in attempts_by_group(history).items():
        latest: Attempt | None = None
        for attempt in attempts:
            if latest is not None and attempt.begin < latest.last:
                yield Violation("overlaps", _overlap(group, latest, attempt), (latest.run, attempt.run))
            if latest is None or attempt.last > latest.last:
                latest = attempt


def _overlap(group: str, one: Attempt, other: Attempt) -> str:
    return (
        f"group {group}: run {other.run} (fence {other.fence}, pid {other.pid}) began at {other.begin:.6f}, "
        f"run {one.run} (fence {one.fence}, pid {one.pid}) lived until {one.last:.6f}"
    )


class Placed(NamedTuple):
    """A run in its group's line: when it first began, and from when on its followers may begin."""

    intent: Intent
    run: int
    first: float
    done: float


def out_of_order(history: History) -> Iterator[Violation]:
    """Kind "out_of_order": a run began although one that was committed before its enqueue had not had its turn."""
    groups: dict[str, list[Placed]] = defaultdict(list)
    for run, attempts in history.tried.items():
        intent = history.by_token.get(attempts[0].token)
        real = [attempt for attempt in attempts if not history.is_zombie(attempt)]
        if intent is not None and intent.group and real:
            groups[intent.group].append(Placed(intent, run, real[0].begin, _done(history, intent, attempts, real)))
    for placed in groups.values():
        yield from _overtaken(placed)


def _overtaken(placed: Sequence[Placed]) -> Iterator[Violation]:
    ahead = sorted((p for p in placed if _blocks(p.intent)), key=lambda p: p.intent.committed or 0.0)
    moments = [p.intent.committed or 0.0 for p in ahead]
    latest = list(accumulate(ahead, _later))
    for behind in placed:
        index = bisect_left(moments, behind.intent.called)
        if index and latest[index - 1].done > behind.first:
            yield Violation("out_of_order", _overtook(latest[index - 1], behind), (latest[index - 1].run, behind.run))


def _later(one: Placed, other: Placed) -> Placed:
    return other if other.done > one.done else one


def _blocks(intent: Intent) -> bool:
    return intent.committed is not None and not intent.delayed


def _overtook(front: Placed, behind: Placed) -> str:
    return (
        f"group {behind.intent.group}: run {behind.run} began at {behind.first:.6f}, before run {front.run}, which was "
        f"committed {behind.intent.called - (front.intent.committed or 0):.3f} s earlier, was done ({front.done:.6f})"
    )


def _done(history: History, intent: Intent, attempts: Sequence[Attempt], real: Sequence[Attempt]) -> float:
    """From when on the next of the group may begin.

    A run that yields only has to begin first. An atomic run is done when the attempt ends that was
    settled; another one also when an attempt ended well and its outcome was lost with its process.
    """
    if intent.yields:
        return attempts[0].begin
    settled = history.settled_fence(attempts[0].run)
    if intent.expected == "ABANDONED":
        return real[-1].begin
    counted = [attempt for attempt in attempts if attempt.fence == settled]
    if not intent.atomic:
        counted += real
    ends = [attempt.end for attempt in counted if attempt.end is not None and attempt.outcome in (OK, DOOMED)]
    return min(ends, default=math.inf)


CHECKS: Sequence = (overlaps, out_of_order)
