"""The judge of the chaos run: a good history passes, and each kind of bad one is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.history import DOOMED, FAIL, OK, ROLLED_BACK, UNKNOWN, Attempt, Change, Effect, Kill, Row, Stop
from tests.chaos.judge import KINDS
from tests.chaos.judge.recovering import percentile, recoveries
from tests.chaos.lines import read
from tests.chaos.samples import CHILD, MAIN, OTHER, change, ended, good, kinds, retried, told

pytestmark = pytest.mark.once


def test_a_good_history_passes() -> None:
    assert told(good()) == []
    assert told(retried()) == []


def test_a_committed_run_without_a_row_is_lost() -> None:
    history = good()
    assert "lost" in kinds(history, rows=history.rows[:1], effects=history.effects[:1])


def test_a_run_whose_commit_nobody_knows_may_have_no_row() -> None:
    history = good()
    unknown = replace(history.intents[1], fate=UNKNOWN, committed=None)
    alone = {"rows": history.rows[:1], "attempts": history.attempts[:1], "effects": history.effects[:1]}
    assert kinds(history, intents=[history.intents[0], unknown], changes=ended(1, 11), **alone) == set()
    assert kinds(history, intents=[history.intents[0], unknown]) == set()


def test_a_run_with_another_end_is_lost() -> None:
    history = good()
    rows = [history.rows[0], replace(history.rows[1], status="ABANDONED")]
    assert "lost" in kinds(history, rows=rows, changes=[*ended(1, 11), *ended(2, 12, status="ABANDONED")])


def test_a_success_that_no_handler_ended_is_lost() -> None:
    history = good()
    unfinished = Attempt(1, 11, "a", CHILD, MAIN, 1.0, 1.5, FAIL)
    assert "lost" in kinds(history, attempts=[unfinished, history.attempts[1]])
    assert "lost" in kinds(history, attempts=history.attempts[1:])


def test_live_rows_at_the_end_are_stuck() -> None:
    history = good()
    rows = [history.rows[0], replace(history.rows[1], status="RUNNING")]
    assert kinds(history, rows=rows, changes=[*ended(1, 11), ended(2, 12)[0]], effects=[Effect(1, 11)]) == {"stuck"}


def test_a_rolled_back_run_that_began_is_a_phantom() -> None:
    history = good()
    ghostly = replace(history.intents[1], fate=ROLLED_BACK, committed=None)
    rows = {"rows": history.rows[:1], "changes": ended(1, 11), "effects": history.effects[:1]}
    assert kinds(history, intents=[history.intents[0], ghostly], **rows) == {"phantoms"}
    assert kinds(history, intents=[history.intents[0], ghostly], attempts=history.attempts[:1], **rows) == set()


@pytest.mark.parametrize(
    "last",
    [
        change(1, "SUCCEEDED", "SUCCEEDED", 11),
        change(1, "SUCCEEDED", "READY", 11),
        change(1, "RUNNING", "FAILED", 11),
        change(1, "RUNNING", "SUCCEEDED", 10, 11),
    ],
)
def test_a_second_end_or_a_sinking_fence_is_late(last: Change) -> None:
    history = good()
    assert kinds(history, changes=[*ended(1, 11), last, *ended(2, 12)]) >= {"late"}


def test_two_attempts_of_a_group_at_once_overlap() -> None:
    history = good()
    early = Attempt(2, 12, "b", OTHER, MAIN, 1.4, 2.5, OK)
    assert "overlaps" in kinds(history, attempts=[history.attempts[0], early])


def test_an_attempt_without_an_end_lives_until_its_last_sign() -> None:
    first = Attempt(1, 10, "a", CHILD, MAIN, 0.5, last=1.2)
    history = retried()
    assert "overlaps" in kinds(history, attempts=[first, *history.attempts[1:]])


def test_an_attempt_without_an_end_lives_until_its_kill() -> None:
    assert "overlaps" in kinds(retried(), kills=[Kill(CHILD, MAIN, "child", 1.1)])


def test_process_ids_come_back() -> None:
    first = Kill(CHILD, MAIN, "child", 0.7)
    assert kinds(retried(), kills=[first, Kill(CHILD, 999, "watchdog", 1.1)]) == set()
    assert kinds(retried(), kills=[first, Kill(CHILD, MAIN, "child", 1.1)]) == set()


def test_a_run_that_yields_has_had_its_turn_also_when_it_may_be_a_zombie() -> None:
    history = good()
    yielding = replace(history.intents[0], yields=True)
    tries = [Attempt(1, 10, "a", OTHER, 200, 1.0, 1.1, FAIL), Attempt(1, 11, "a", CHILD, MAIN, 3.0, 3.5, OK)]
    parts: dict[str, Any] = {"attempts": [*tries, history.attempts[1]], "stops": [Stop(999, 200, "watchdog", 0.5, 2.9)]}
    changes = [change(1, "READY", "RUNNING", 10), change(1, "RUNNING", "READY", 10), *ended(1, 11, 10), *ended(2, 12)]
    assert kinds(history, intents=[yielding, history.intents[1]], changes=changes, **parts) == set()
    assert "out_of_order" in kinds(history, changes=changes, **parts)


def test_a_stopped_process_is_a_zombie() -> None:
    history = retried()
    woken = Attempt(1, 10, "a", CHILD, MAIN, 0.5, 4.1, OK)
    stop = Stop(CHILD, MAIN, "child", 0.6, 4.0)
    parts: dict[str, Any] = {"attempts": [woken, *history.attempts[1:]], "kills": []}
    assert kinds(history, stops=[stop], **parts) == set()
    assert kinds(history, stops=[replace(stop, pid=MAIN, kind="main")], **parts) == set()
    assert "overlaps" in kinds(history, stops=[replace(stop, pid=999)], **parts)
    assert "overlaps" in kinds(history, stops=[replace(stop, end=1.0)], **parts)


def test_a_zombie_whose_outcome_counts_is_late() -> None:
    history = retried()
    changes = [*history.changes[:2], change(1, "RUNNING", "SUCCEEDED", 10, 10), *ended(2, 12)]
    assert "late" in kinds(history, changes=changes, rows=[Row(1, "a", "SUCCEEDED", 10), history.rows[1]])


def test_a_row_that_ends_before_its_handler_is_late() -> None:
    history = good()
    first, *rest = history.changes
    early = [first, replace(rest[0], at=1.2), *rest[1:]]
    assert kinds(history, changes=early) == {"late"}
    assert kinds(history, changes=[first, replace(rest[0], at=1.51), *rest[1:]]) == set()


def test_the_same_reservation_executed_twice_overlaps() -> None:
    history = good()
    assert "overlaps" in kinds(history, attempts=[*history.attempts, Attempt(1, 11, "a", OTHER, MAIN, 3.0, 3.1, OK)])


def test_a_run_that_begins_before_an_earlier_one_is_out_of_order() -> None:
    history = good()
    first, second = history.attempts
    swapped = [replace(first, begin=3.0, end=3.5, last=3.5), second]
    assert kinds(history, attempts=swapped) == {"out_of_order"}
    unordered = [history.intents[0], replace(history.intents[1], called=0.05)]
    assert kinds(history, attempts=swapped, intents=unordered) == set()


def test_a_run_that_begins_while_its_predecessor_waits_for_a_retry_is_out_of_order() -> None:
    history = good()
    failed = Attempt(1, 10, "a", CHILD, MAIN, 1.0, 1.5, FAIL)
    again = Attempt(1, 11, "a", CHILD, MAIN, 3.0, 3.5, OK)
    attempts = [failed, again, history.attempts[1]]
    assert kinds(history, attempts=attempts) == {"out_of_order"}
    yields = [replace(history.intents[0], yields=True), history.intents[1]]
    assert kinds(history, attempts=attempts, intents=yields) == set()


def test_a_run_whose_outcome_was_lost_with_its_process_may_run_again_behind_its_followers() -> None:
    history = good()
    attempts = [
        Attempt(1, 8, "a", CHILD, MAIN, 0.5, 0.6, OK),
        Attempt(2, 9, "b", CHILD, MAIN, 0.7),
        *history.attempts,
    ]
    assert kinds(history, attempts=attempts) == set()
    atomic = [replace(history.intents[0], atomic=True), history.intents[1]]
    assert "out_of_order" in kinds(history, attempts=attempts, intents=atomic)


def test_a_delayed_run_may_be_overtaken() -> None:
    history = good()
    later = Attempt(1, 11, "a", CHILD, MAIN, 3.0, 3.5, OK)
    delayed = [replace(history.intents[0], delayed=True), history.intents[1]]
    assert kinds(history, attempts=[later, history.attempts[1]], intents=delayed) == set()


def test_a_doomed_run_lets_its_followers_begin() -> None:
    history = good()
    intents = [replace(history.intents[0], expected="FAILED"), history.intents[1]]
    attempts = [replace(history.attempts[0], outcome=DOOMED), history.attempts[1]]
    parts: dict[str, Any] = {"rows": [Row(1, "a", "FAILED", 11), history.rows[1]], "effects": [Effect(2, 12)]}
    changes = [*ended(1, 11, status="FAILED"), *ended(2, 12)]
    assert kinds(history, intents=intents, attempts=attempts, changes=changes, **parts) == set()


@pytest.mark.parametrize("effects", [[], [12, 12], [9, 12], [9]])
def test_writes_of_an_atomic_run_are_there_once(effects: list[int]) -> None:
    history = good()
    written = [Effect(1, 11), *(Effect(2, fence) for fence in effects)]
    assert "atomic_twice" in kinds(history, effects=written)


def test_a_success_without_its_writes_is_lost() -> None:
    history = good()
    assert kinds(history, effects=history.effects[1:]) == {"lost"}
    assert kinds(history, effects=[Effect(1, 9), *history.effects]) == set()


def test_a_loss_needs_a_kill_or_a_long_stop_of_its_worker() -> None:
    history = retried()
    assert kinds(history, kills=[]) == {"unexplained"}
    assert kinds(history, kills=[Kill(OTHER, MAIN, "child", 0.7)]) == {"unexplained"}
    assert kinds(history, kills=[Kill(CHILD, MAIN, "child", 9.0)]) >= {"unexplained"}
    assert kinds(history, kills=[Kill(300, MAIN, "watchdog", 0.7)]) == {"unexplained"}
    assert kinds(history, kills=[Kill(MAIN, MAIN, "main", 0.7)]) == set()
    assert kinds(history, kills=[Kill(MAIN, MAIN, "both", 0.7)]) == set()
    assert kinds(history, kills=[Kill(CHILD, MAIN, "self", 0.7)]) == set()
    assert kinds(history, kills=[], stops=[Stop(CHILD, MAIN, "child", 0.6, 3.0)]) == set()


def test_a_worker_that_was_judged_dead_explains_later_losses_under_its_identity() -> None:
    history, worker = retried(), f"host:{MAIN}:abc"
    before = [change(9, "READY", "RUNNING", 3, 0, at=0.1), change(9, "RUNNING", "READY", 3, worker=worker, at=0.2)]
    stop = Stop(MAIN, MAIN, "main", -3.0, 0.15)
    lost = [*history.changes[:1], replace(history.changes[1], at=4.9), *history.changes[2:]]
    lost[0] = replace(lost[0], at=4.4)
    assert kinds(history, kills=[], stops=[stop], changes=lost) == {"unexplained"}
    assert kinds(history, kills=[], stops=[stop], changes=[*before, *lost]) == set()


def test_what_is_left_in_redis_and_commands_that_crash_are_named() -> None:
    assert kinds(good(), keys_left=["{groupjobs:default}:line:g"], crashes=["recover_ghosts"]) == {
        "keys_left",
        "crashes",
    }


def test_every_kind_has_a_place_in_the_verdict() -> None:
    assert set(KINDS) >= {"lost", "overlaps", "out_of_order", "atomic_twice", "stuck"}


def test_the_log_is_read_back() -> None:
    log = read(
        ["B 1000000000 101 100 7 70 a", "T 1100000000 101 7 70", "E 1200000000 101 7 70 ok", "K 1300000000 101 100"]
    )
    assert log.attempts == [Attempt(7, 70, "a", 101, 100, 1.0, 1.2, OK)]
    assert log.kills == [Kill(101, 100, "self", 1.3)]


def test_recovery_is_the_time_from_a_kill_to_the_next_begin_of_the_group() -> None:
    [found] = recoveries(retried())
    assert (found.kill.pid, found.attempt.run) == (CHILD, 1)
    assert found.seconds == pytest.approx(0.3)
    assert recoveries(good()) == []
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([], 0.99) == 0.0
