"""How long a group waits after a kill of whoever was serving it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.chaos.history import Attempt, History, Kill
from tests.chaos.judge.groups import attempts_by_group

SILENT = 0.2  # seconds: a handler that executes gives a sign of life more often


class Recovery(NamedTuple):
    """A kill, the attempt that it ended, and the seconds until the next begin in the group."""

    kill: Kill
    attempt: Attempt
    seconds: float


def recoveries(history: History) -> list[Recovery]:
    """Every kill of a process, or of its main process, that executed a run of a group with something to run."""
    victims: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in history.attempts:
        if attempt.end is None and not history.is_zombie(attempt):
            victims[attempt.pid].append(attempt)
            victims[attempt.main].append(attempt)
    groups = attempts_by_group(history, zombies=True)
    kills = [kill for kill in history.kills if kill.kind != "watchdog"]
    return [found for kill in kills for found in _of(history, groups, kill, victims.get(kill.pid, ()))]


def _of(
    history: History, groups: Mapping[str, Sequence[Attempt]], kill: Kill, victims: Sequence[Attempt]
) -> Iterator[Recovery]:
    for attempt in victims:
        intent = history.by_token.get(attempt.token)
        if intent is None or not attempt.begin <= kill.at <= attempt.last + SILENT:
            continue
        following = groups.get(intent.group, ())
        index = bisect_left(following, kill.at, key=lambda found: found.begin)
        if index < len(following) and _waited(history, following[index], kill):
            yield Recovery(kill, attempt, following[index].begin - kill.at)


def _waited(history: History, attempt: Attempt, kill: Kill) -> bool:
    """Whether this run was there at the kill: else its group had nothing to wait for."""
    committed = history.by_token[attempt.token].committed
    return committed is not None and committed <= kill.at


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of the values do not exceed; 0 of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
