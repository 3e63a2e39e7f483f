from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupjobs.store import Store
from tests.core.serving import drain
from tests.jobsapp.models import Written
from tests.semantics.jobs import (
    awaits_briefly,
    awaits_for_long,
    softly_limited,
    tidies_up,
    writes_for_ever,
)
from tests.semantics.seen import outcomes, row

Said = Callable[[], list[list[Any]]]


# --- soft


def test_a_soft_limit_is_a_failed_attempt(store: Store, journal: Said) -> None:
    again_result = softly_limited.enqueue("a", times=1)
    for_ever = softly_limited.enqueue("b", times=9)
    drain()
    good, bad = row(again_result), row(for_ever)
    assert (good.status, good.failures, good.losses, outcomes(good)) == ("SUCCEEDED", 1, 0, ["timed_out"])
    assert (bad.status, bad.failures, bad.losses, outcomes(bad)) == ("FAILED", 2, 0, ["timed_out"] * 2)
    for_ever.refresh()
    assert for_ever.errors[0].exception_class.__name__ == "SoftTimeLimit"


def test_a_handler_may_tidy_up_and_succeed(store: Store, journal: Said) -> None:
    result = tidies_up.enqueue("a")
    drain()
    assert (row(result).status, journal()) == ("SUCCEEDED", [["tidy", "a"]])


def test_an_atomic_run_is_rolled_back(store: Store) -> None:
    result = writes_for_ever.enqueue("a")
    drain()
    assert (row(result).status, outcomes(row(result))) == ("FAILED", ["timed_out"])
    assert not Written.objects.exists()


def test_a_coroutine_is_interrupted_where_it_waits(store: Store) -> None:
    waiting, own = awaits_for_long.enqueue("a"), awaits_briefly.enqueue("b")
    drain()
    assert (row(waiting).status, outcomes(row(waiting))) == ("FAILED", ["timed_out"])
    assert (row(own).status, row(own).result) == ("SUCCEEDED", "its own timeout")
