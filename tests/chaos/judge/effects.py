"""What handlers wrote into the database: with `atomic` exactly once, else at most once an attempt."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.history import History, Violation


def atomic_effects(history: History) -> Iterator[Violation]:
    """Kind "atomic_twice": an atomic run's writes are there other than once with SUCCEEDED, or with another end."""
    written: dict[int, list[int]] = defaultdict(list)
    for effect in history.effects:
        written[effect.run].append(effect.fence)
    for row in history.rows:
        intent = history.by_token.get(row.token)
        if intent is None or not intent.atomic:
            continue
        wanted = [row.fence] if row.status == "SUCCEEDED" else []
        if written[row.run] != wanted:
            text = f"atomic run {row.run} is {row.status} under fence {row.fence}, its writes carry {written[row.run]}"
            yield Violation("atomic_twice", text, (row.run,))


def plain_effects(history: History) -> Iterator[Violation]:
    """Kind "overlaps": an attempt wrote twice. Kind "lost": a run SUCCEEDED and its writes are not there."""
    written = Counter((effect.run, effect.fence) for effect in history.effects)
    for (run, fence), count in written.items():
        if count > 1:
            yield Violation("overlaps", f"run {run} wrote {count} times under fence {fence}", (run,))
    for row in history.rows:
        if row.status == "SUCCEEDED" and not written[row.run, row.fence]:
            yield Violation("lost", f"run {row.run} SUCCEEDED and its writes are not there", (row.run,))


CHECKS: Sequence = (atomic_effects, plain_effects)
