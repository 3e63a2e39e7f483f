"""What a journal tells: jobs write into it, see `tests.jobsapp.journal`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

Journal = Callable[[], list[list[Any]]]


def labels(journal: Journal) -> list[Any]:
    """The first word of each line, in the order in which they were written."""
    return [words[0] for words in journal()]


def told(journal: Journal) -> Counter[int]:
    """How often each run was reported."""
    return Counter(words[1] for words in journal() if words[0] == "report")
