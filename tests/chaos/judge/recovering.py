"""How long a group waits after a kill of whoever was serving it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tests.chaos.history import Attempt, History, Kill
from tests.chaos.judge.groups import attempts_by_group


def recoveries(history: History) -> Mapping[str, list[float]]:
    """By kind of kill: seconds from it to the next begin in the group of a run that the victim executed."""
    victims: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in history.attempts:
        if attempt.end is None:
            victims[attempt.pid].append(attempt)
            victims[attempt.main].append(attempt)
    begins = {group: [found.begin for found in attempts] for group, attempts in attempts_by_group(history).items()}
    found: dict[str, list[float]] = defaultdict(list)
    for kill in history.kills:
        if kill.kind not in ("child", "main", "both"):
            continue
        for attempt in victims.get(kill.pid, ()):
            seconds = _until_next(history, begins, attempt, kill)
            if seconds is not None:
                found[kill.kind].append(seconds)
    return found


def _until_next(history: History, begins: Mapping[str, Sequence[float]], attempt: Attempt, kill: Kill) -> float | None:
    """None when the attempt did not run at the kill, or nothing of its group began any more."""
    intent = history.by_token.get(attempt.token)
    if intent is None or not attempt.begin <= kill.at or attempt.last < kill.at - 0.2:
        return None
    following = begins.get(intent.group, ())
    index = bisect_left(following, kill.at)
    return following[index] - kill.at if index < len(following) else None


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of the values do not exceed; 0 of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
