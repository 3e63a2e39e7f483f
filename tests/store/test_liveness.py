"""Who is alive, who is dead, and what becomes of the leases of the dead."""

from __future__ import annotations

from typing import Any

import pytest

from groupjobs.store import Consumer, EpochChanged
from tests.store.acting import ONE, TWO, Acting, drain, lease, publish, runs
from tests.store.conftest import MakeStore, Side
from tests.store.travel import Timed, TimedReference


@pytest.fixture(params=["worker", "consumer", "pid", "silence"])
def died(request: pytest.FixtureRequest) -> str:
    """How a worker's end is noticed."""
    return str(request.param)


def notice_death(store: Side, how: str) -> None:
    if how == "silence":
        store.pass_time(61)
    else:
        given: dict[str, Any] = {
            "worker": {"worker": ONE.worker},
            "consumer": {"consumer": ONE.nonce},
            "pid": {"worker": ONE.worker, "pid": ONE.pid},
        }
        store.reap(**given[how])


def test_a2_every_way_of_dying_heals_the_same(store: Side, died: str) -> None:
    publish(store, "a", 1, 2)
    (held,) = Acting(store).step(1).reservations
    notice_death(store, died)
    (again,) = Acting(store, TWO).step(64).reservations
    assert (again.run, again.healed, again.alone, again.interrupted) == (1, held.fence, True, False)
    assert again.fence > held.fence
    assert store.step(ONE, 2, 64).state == "refused"
    assert store.keep(ONE, 1, [lease(held)]).state == "refused"


def test_a4_the_second_reap_finds_nothing(store: Side) -> None:
    publish(store, "a", 1, 2, 3)
    Acting(store).step(64)
    assert [store.reap(ONE.worker).healed for _ in range(2)] == [3, 0]


def test_an_incarnation_judged_dead_stays_dead(store: Side) -> None:
    store.beat(ONE.worker, 2, {})
    store.reap(ONE.worker)
    store.pass_time(600)
    assert not store.beat(ONE.worker, 2, {}).alive
    assert store.step(ONE, 1, 1).state == "refused"


def test_b1_a_beating_worker_is_never_robbed(store: Side) -> None:
    publish(store, "a", 1)
    one = Acting(store)
    one.step(1)
    for _ in range(20):
        store.pass_time(20)
        assert store.beat(ONE.worker, 1, {ONE.nonce: 1}).alive
        store.tick("w", 1)
    assert store.snapshot([(1, "a")]).entries[1].ghost is False
    assert one.keep().lost == ()


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_b8_a_jump_of_time_robs_nobody(store: Side, seconds: int) -> None:
    publish(store, "a", 1)
    one = Acting(store)
    one.step(1)
    store.beat(ONE.worker, 1, {ONE.nonce: 1})
    store.now += seconds * 1000
    store.tick("w", 1)
    entry = store.snapshot([(1, "a")]).entries[1]
    assert (entry.ghost, entry.silent) == (False, seconds > 0)
    assert store.beat(ONE.worker, 1, {ONE.nonce: 1}).alive


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_b8_nobody_hides_behind_a_jump_of_time(store: Side, seconds: int) -> None:
    publish(store, "a", 1)
    Acting(store).step(1)
    store.now += seconds * 1000
    store.ping()
    store.pass_time(61)
    assert Acting(store, TWO).step(1).reservations[0].run == 1


def test_listed_executions_come_back_after_a_flush_but_not_ended_ones(make_store: MakeStore) -> None:
    store = make_store()
    Acting(store).step(64)
    Acting(store, TWO).step(0)
    reply = store.beat(ONE.worker, 1, {ONE.nonce: 7, "young": 8})
    assert reply.consumers == {"young": 8}
    assert store.beat(TWO.worker, 1, {}).consumers == {TWO.nonce: TWO.pid}


def test_a_consumer_without_leases_that_nobody_saw_no_longer_counts(store: Side) -> None:
    Acting(store).step(0)
    for _ in range(4):
        store.pass_time(20)
        store.beat(ONE.worker, 1, {ONE.nonce: 1})
    store.tick("w", 1)
    assert store.overview().consumers == ()


def test_keep_overrides_what_waits_and_lower_fences_never_higher_ones(store: Side) -> None:
    publish(store, "a", 1)
    publish(store, "b", 2)
    one = Acting(store)
    one.step(64)
    mine = {r.run: r for r in one.held}
    store.step(ONE, 2, 0)
    one.number = 2
    assert one.keep().lost == (), "given back by mistake, taken again"
    assert store.snapshot([(1, "a")]).entries[1].place == "leased"
    store.step(ONE, 3, 0)
    (theirs,) = Acting(store, TWO).step(1).reservations
    one.number = 3
    assert one.keep().lost == ((theirs.run, mine[theirs.run].fence),)


def test_keep_tells_the_number_and_never_puts_back(store: Side) -> None:
    publish(store, "a", 1)
    one = Acting(store)
    one.step(1)
    store.keep(ONE, 5, [])
    assert store.snapshot([(1, "a")]).entries[1].place == "leased"
    assert store.step(ONE, 4, 64).state == "refused"
    assert store.step(ONE, 5, 64).state == "repeat"


def test_a_cancel_of_a_held_run_is_told_by_keep(store: Side) -> None:
    publish(store, "a", 1)
    one = Acting(store)
    one.step(1)
    assert store.withdraw([(1, "a", 1), (2, "a", 1)]) == ("held", "absent")
    assert one.keep().cancels == (1,)


def test_withdraw_takes_this_life_or_an_older_one(store: Side) -> None:
    publish(store, "a", 1, life=2)
    assert store.withdraw([(1, "a", 1)]) == ("absent",)
    assert store.withdraw([(1, "a", 2)]) == ("removed",)
    assert store.withdraw([(1, "a", 2)]) == ("absent",)
    assert Acting(store).step(64).ended


def test_the_newer_version_of_a_hold_decides(store: Side) -> None:
    publish(store, "a", 1)
    assert store.hold("a", 2, False)
    assert not store.hold("a", 1, True)
    assert store.hold("a", 2, False), "sent twice"
    assert store.hold("a", 3, True)
    assert Acting(store).step(64).ended
    assert store.hold("a", 4, False)
    assert drain(store, TWO) == [1]


def test_a_paused_queue_serves_nothing_and_rings_no_bell(store: Side) -> None:
    store.hold("", 1, True)
    publish(store, "a", 1)
    reply = Acting(store).step(64)
    assert (reply.state, reply.ended, runs(reply)) == ("paused", True, [])
    assert store.tick("w", 1).bells == 0
    store.hold("", 2, False)
    assert store.tick("w", 1).bells == 1


def test_drop_spares_live_leases_and_newer_lives(store: Side) -> None:
    publish(store, "a", 1, 2)
    publish(store, "b", 3, life=2, fence=4)
    (held,) = Acting(store).step(1).reservations
    gone = [(1, "a", held.fence, 9), (2, "a", 1, 9), (3, "b", 4, 1)]
    assert store.drop(gone) == 0
    assert store.drop([(2, "a", 0, 1), (3, "b", 4, 2)]) == 2
    store.reap(ONE.worker)
    assert store.drop([(1, "a", held.fence, 1)]) == 1
    assert store.entries().entries == ()


def test_a_rebuild_reserves_nothing_and_strikes_nobody_off(make_store: MakeStore) -> None:
    store = make_store()
    lose_memory(store)
    publish(store, "a", 1)
    reply = Acting(store).step(64)
    assert (reply.state, reply.ended, runs(reply)) == ("rebuild", False, [])
    store.pass_time(5)
    assert store.tick("w", 1).rebuilding_ms == 5000
    assert store.open(store.tick("w", 1).epoch)
    assert store.tick("w", 1).rebuilding_ms == 0


def test_a_lease_comes_back_to_a_listed_consumer_only(make_store: MakeStore) -> None:
    store = make_store()
    publish(store, "a", 1)
    (held,) = Acting(store).step(1).reservations
    old = store.tick("w", 1).epoch
    lose_memory(store)
    epoch = store.tick("w", 1).epoch
    told = [(lease(held), ONE.nonce, ONE.worker)]
    with pytest.raises(EpochChanged):
        store.restore(old, told)
    assert store.restore(epoch, told) == (False,)
    store.beat(ONE.worker, 1, {ONE.nonce: 1})
    assert store.restore(epoch, told) == (True,)
    store.open(epoch)
    publish(store, "a", 2)
    assert Acting(store, TWO).step(64).ended
    with pytest.raises(EpochChanged):
        store.enqueue([], old)


def test_e2b_another_server_is_a_loss_of_memory(scripts: Timed) -> None:
    publish(scripts, "a", 1)
    Acting(scripts).step(1)
    ended = Consumer("old", "w:3:c", 3)
    Acting(scripts, ended).step(0)
    scripts.client.hset(f"{scripts.base}:epoch", "server", "another")
    tick = scripts.tick("w", 1)
    assert tick.state == "rebuild"
    scripts.beat(ONE.worker, 1, {ONE.nonce: 1})
    scripts.open(tick.epoch)
    assert [c.nonce for c in scripts.overview().consumers] == [ONE.nonce], "who was not confirmed is dead"


def lose_memory(store: Side) -> None:
    store.now += 1
    if isinstance(store, TimedReference):
        store.forget()
    else:
        store.client.flushall()
