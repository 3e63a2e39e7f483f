"""The verdicts of recovery: a row, and what Redis answered afterwards."""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import Any

import pytest

from groupjobs import lifecycle
from groupjobs.lifecycle import EntrySeen, RowSeen, Seen

pytestmark = pytest.mark.once


def replace(value: Any, **changes: Any) -> Any:
    return value._replace(**changes) if isinstance(value, Seen) else dataclasses.replace(value, **changes)


READY = RowSeen("READY", fence=40, life=2, alone=False, losses=0, max_losses=2)
RUNNING = replace(READY, status="RUNNING")
IN_LINE = EntrySeen(leased=False, life=2, fence=40, alone=False)
LEASED = EntrySeen(leased=True, life=2, fence=40, alone=False)
GHOST = replace(LEASED, ghost=True)
VERDICTS = [
    # a waiting row
    (READY, None, "publish"),
    (READY, IN_LINE, "fine"),
    (READY, replace(IN_LINE, life=3), "fine"),
    (READY, replace(IN_LINE, life=1), "publish"),
    (READY, replace(IN_LINE, fence=90), "fine"),
    (replace(READY, alone=True), IN_LINE, "publish"),
    (replace(READY, alone=True), replace(IN_LINE, alone=True), "fine"),
    (READY, replace(IN_LINE, alone=True), "fine"),
    (READY, LEASED, "kept"),
    (READY, replace(LEASED, fence=90), "kept"),
    (READY, replace(LEASED, silent=True), "kept"),
    (READY, GHOST, "release"),
    (READY, replace(GHOST, fence=90), "release"),
    # a running row
    (RUNNING, None, "lost"),
    (RUNNING, IN_LINE, "lost"),
    (RUNNING, replace(IN_LINE, fence=90), "lost"),
    (RUNNING, GHOST, "lost"),
    (RUNNING, replace(GHOST, fence=90), "lost"),
    (RUNNING, LEASED, "kept"),
    (RUNNING, replace(LEASED, silent=True), "kept"),
    (RUNNING, replace(LEASED, fence=41), "kept"),
    (RUNNING, replace(LEASED, fence=39), "lost"),
]


@pytest.mark.parametrize(("row", "entry", "word"), VERDICTS)
def test_verdict(row: RowSeen, entry: EntrySeen | None, word: str) -> None:
    found = lifecycle.verdict(row, entry)
    assert found.word == word
    assert found.reason


@pytest.mark.parametrize("status", sorted(lifecycle.TERMINAL))
@pytest.mark.parametrize("entry", [None, IN_LINE, LEASED, GHOST])
def test_b5_a_row_that_has_ended_is_never_judged(status: str, entry: EntrySeen | None) -> None:
    row = replace(RUNNING, status=status, alone=True, losses=9)
    assert lifecycle.verdict(row, entry).word == "fine"
    assert not lifecycle.loss_counts(row, entry)


def test_a_loss_counts_only_for_a_run_alone_under_a_worker_that_did_not_leave() -> None:
    for status, alone, entry in product(("READY", "RUNNING"), (True, False), (None, IN_LINE, GHOST)):
        row = replace(RUNNING, status=status, alone=alone)
        assert lifecycle.loss_counts(row, entry) is (status == "RUNNING" and alone)
        if entry is not None:
            assert not lifecycle.loss_counts(row, replace(entry, interrupted=True))


@pytest.mark.parametrize(
    ("losses", "most", "counted", "over"),
    [(0, 0, True, True), (0, 0, False, False), (1, 2, True, False), (2, 2, True, True), (2, 2, False, False)],
)
def test_condemned(losses: int, most: int, counted: bool, over: bool) -> None:
    assert lifecycle.condemned(replace(RUNNING, losses=losses, max_losses=most), counted) is over
