"""Who is reserved, in which order, and how many at once."""

from __future__ import annotations

import pytest

from groupjobs.store import Publication
from tests.store.acting import ONE, TWO, Acting, drain, publish, runs
from tests.store.conftest import MakeStore, Side


def test_a_line_is_served_by_order_then_id(store: Side) -> None:
    publish(store, "a", 7, 5, order=3)
    publish(store, "a", 9, order=-(2**53))
    publish(store, "a", 2**63 - 1, order=2**53 - 1)
    publish(store, "a", 1, order=2**53)
    assert drain(store) == [9, 5, 7, 2**63 - 1, 1]


def test_an_order_survives_retry_and_loss_exactly(store: Side) -> None:
    publish(store, "a", 1, order=2**53)
    publish(store, "a", 2, order=2**53 - 1)
    one = Acting(store)
    assert runs(one.step(1)) == [2]
    assert runs(one.step(1, "retry")) == [2]
    store.goodbye(ONE)
    assert drain(store, TWO, want=1) == [2, 1]


def test_groups_take_turns_in_equal_shares(store: Side) -> None:
    for group in "abc":
        publish(store, group, *(ord(group) * 10 + n for n in range(5)))
        store.now += 1
    reply = Acting(store).step(6)
    assert [r.group for r in reply.reservations] == list("aabbcc")
    assert runs(reply)[:2] == [970, 971]


def test_a_group_is_held_by_one_consumer(store: Side) -> None:
    publish(store, "a", 1, 2, 3)
    one = Acting(store)
    assert runs(one.step(2)) == [1, 2]
    assert Acting(store, TWO).step(64).ended
    assert runs(one.step(2)) == [3]


def test_a_wider_group_gives_one_head_to_each_consumer(make_store: MakeStore) -> None:
    store = make_store(group_concurrency=2)
    publish(store, "a", 1, 2, 3)
    assert runs(Acting(store).step(64)) == [1]
    assert runs(Acting(store, TWO).step(64)) == [2]
    assert store.snapshot([(3, "a")]).groups["a"].ready is False


def test_a_suspect_is_reserved_alone(store: Side) -> None:
    publish(store, "a", 1, alone=1)
    store.now += 1
    publish(store, "b", 2)
    store.now += 1
    publish(store, "c", 3, alone=2)
    one = Acting(store)
    first, second, third = one.step(64), one.step(64), one.step(64)
    assert [runs(first), runs(second), runs(third)] == [[1], [2], [3]]
    assert first.reservations[0].alone
    assert third.reservations[0].alone


def test_a_batch_of_one_counts_as_alone(store: Side) -> None:
    publish(store, "a", 1, 2)
    one = Acting(store)
    assert one.step(1).reservations[0].alone
    one.step(0, "back")
    assert [r.alone for r in one.step(64).reservations] == [True], "a give-back leaves the hint"
    one.step(0, "retry")
    assert [r.alone for r in one.step(64).reservations] == [False, False], "its own failure clears it"


def test_always_alone_stays_so(store: Side) -> None:
    publish(store, "a", 1, 2, alone=2)
    one = Acting(store)
    assert runs(one.step(64)) == [1]
    assert runs(one.step(64, "retry")) == [1]


def test_priority_is_a_head_start(store: Side) -> None:
    publish(store, "a", 1)
    store.now += 500
    publish(store, "b", 2, priority=1)
    store.now += 600
    publish(store, "c", 3, priority=1)
    publish(store, "a", 4)
    assert runs(Acting(store).step(2)) == [2, 1]


def test_a_publication_of_high_priority_lifts_its_group(store: Side) -> None:
    publish(store, "a", 1)
    publish(store, "b", 2)
    publish(store, "b", 3, priority=9)
    assert runs(Acting(store).step(1)) == [2]


def test_a_back_off_blocks_its_group(store: Side) -> None:
    publish(store, "a", 1, 2)
    one = Acting(store)
    one.step(1)
    assert one.step(64, "retry", delay_ms=30_000).ended
    assert store.snapshot([(1, "a")]).groups["a"].later_ms == 30_000
    assert store.tick("w", 1).wait_ms == 30_000
    store.pass_time(31)
    assert drain(store, TWO) == [1, 2]


def test_a_yielding_retry_lets_others_pass(store: Side) -> None:
    publish(store, "a", 1, 2)
    one = Acting(store)
    one.step(1)
    assert runs(one.step(64, "retry", delay_ms=30_000, yields=True)) == [2]
    assert store.snapshot([(1, "a")]).entries[1].place == "scheduled"
    store.pass_time(31)
    assert runs(one.step(64)) == [1]


@pytest.mark.parametrize("when", ["delay", "due"])
def test_a_scheduled_run_joins_its_line_when_due(store: Side, when: str) -> None:
    due, delay = (store.now + 30_000, None) if when == "due" else (None, 30_000)
    store.enqueue([Publication(1, "a", due_ms=due, delay_ms=delay, yields=True), Publication(2, "a", order=1)])
    assert drain(store) == [2]
    store.pass_time(31)
    assert drain(store, TWO) == [1]


def test_a_later_head_keeps_its_group_waiting(store: Side) -> None:
    publish(store, "a", 1, delay_ms=30_000)
    publish(store, "a", 2)
    assert Acting(store).step(64).ended
    store.pass_time(31)
    assert drain(store, TWO) == [1, 2]


def test_a_rate_lets_only_so_many_begin(make_store: MakeStore) -> None:
    store = make_store(rate=(2, 10.0))
    publish(store, "a", 1, 2, 3, 4)
    one = Acting(store)
    assert runs(one.step(64)) == [1, 2]
    assert one.step(64).ended
    assert store.snapshot([(3, "a")]).groups["a"].later_ms == 5000
    store.pass_time(5)
    two = Acting(store, TWO)
    assert runs(two.step(64)) == [3]
    store.pass_time(60)
    assert runs(two.step(64)) == [4]
    two.step(64)
    store.pass_time(60)
    store.tick("w", 0)


def test_a_groups_own_rate_and_limit(store: Side) -> None:
    store.hold("a", 1, False, group_concurrency=2, rate=(1, 10.0))
    publish(store, "a", 1, 2)
    assert runs(Acting(store).step(64)) == [1]
    assert Acting(store, TWO).step(64).ended
    store.pass_time(10)
    store.hold("a", 2, False)
    assert store.snapshot([(2, "a")]).groups["a"].ready is False, "one lease is the limit again"


def test_blocked_groups_cost_a_step_nothing(store: Side) -> None:
    for number in range(50):
        store.hold(f"held{number}", 1, True)
        publish(store, f"held{number}", number + 1)
    publish(store, "a", 99)
    assert runs(Acting(store).step(1)) == [99]


def test_e4_a_worker_that_beats_and_serves_nobody_shows_how_long(store: Side) -> None:
    publish(store, "a", 1)
    Acting(store).step(1)
    for _ in range(3):
        store.pass_time(20)
        store.beat(ONE.worker, 1, {})
    [worker] = [seen for seen in store.overview().workers if seen.worker == ONE.worker]
    assert (worker.beat_age_ms, worker.served_age_ms) == (0, 60_000)
