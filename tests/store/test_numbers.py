"""Replies lost, calls sent twice, copies that run late."""

from __future__ import annotations

from groupjobs.store import Consumer, Outcome, Publication
from tests.store.acting import ONE, TWO, Acting, all_, drain, publish, runs
from tests.store.conftest import Side


def test_b7_a_lost_reply_is_answered_again_in_the_order_of_fences(store: Side) -> None:
    publish(store, "a", 5, 4, 3)
    publish(store, "b", 9)
    one = Acting(store)
    first = one.step(64)
    again = one.again(64)
    assert again.state == "repeat"
    assert again.reservations == first.reservations
    assert store.overview().consumers[0].leases == 4, "no lease leaked, none stripped"


def test_b7_a_settle_sent_twice_settles_once(store: Side) -> None:
    publish(store, "a", 1, 2)
    one = Acting(store)
    told = all_("done", one.step(1).reservations)
    second = one.step(1)
    assert one.again(1, told).reservations == second.reservations
    assert runs(second) == [2]
    assert store.overview().stats["done"] == 1


def test_b7_an_older_number_is_refused(store: Side) -> None:
    publish(store, "a", 1, 2)
    one = Acting(store)
    one.step(1)
    one.step(1)
    late = store.step(ONE, 1, 64)
    assert late.state == "refused"
    assert not late.reservations
    assert store.snapshot([(2, "a")]).entries[2].place == "leased"


def test_b7_a_new_number_gives_back_what_it_does_not_name(store: Side) -> None:
    publish(store, "a", 1)
    publish(store, "b", 2)
    one = Acting(store)
    first, second = one.step(64).reservations
    reply = store.step(ONE, 2, 0, all_("hold", [second]))
    assert not reply.stale
    found = store.snapshot([(1, "a"), (2, "b")]).entries
    assert (found[first.run].place, found[second.run].place) == ("line", "leased")
    assert found[first.run].healed == 0


def test_b7_a_step_after_the_strike_off_is_refused(store: Side) -> None:
    publish(store, "a", 1)
    one = Acting(store)
    one.step(64)
    assert one.step(64).ended
    publish(store, "a", 2)
    assert one.again(64).state == "refused"
    assert store.step(ONE, 3, 64).state == "refused"
    assert store.keep(ONE, 3, []).state == "refused"
    assert drain(store, TWO) == [2]


def test_nothing_wanted_leaves_the_consumer(store: Side) -> None:
    one = Acting(store)
    assert not one.step(0).ended
    assert one.step(1).ended


def test_a_consumer_with_leases_is_never_struck_off(store: Side) -> None:
    publish(store, "a", 1)
    one = Acting(store)
    one.step(1)
    assert not one.step(64, "hold").ended


def test_b2_a_stale_outcome_is_named_and_changes_nothing(store: Side) -> None:
    publish(store, "a", 1)
    (mine,) = Acting(store).step(1).reservations
    store.goodbye(ONE)
    (theirs,) = Acting(store, TWO).step(1).reservations
    zombie = Consumer("three", ONE.worker, 1)
    for verb in ("done", "retry", "back", "suspect"):
        reply = store.step(zombie._replace(nonce=verb), 1, 0, all_(verb, [mine]))
        assert reply.stale == ((1, mine.fence),)
    assert store.snapshot([(1, "a")]).entries[1].fence == theirs.fence


def test_one_run_named_twice_ends_once(store: Side) -> None:
    publish(store, "a", 1, 2)
    one = Acting(store)
    (held,) = one.step(1).reservations
    reply = store.step(ONE, 2, 0, [*all_("done", [held]), *all_("retry", [held])])
    assert reply.stale == ((1, held.fence),)
    assert drain(store, TWO) == [2]


def test_fences_only_grow(store: Side) -> None:
    publish(store, "a", 1, 2, 3, fence=2**52)
    one, seen = Acting(store), [2**52]
    for verb in ("done", "retry", "back", "done"):
        seen += [r.fence for r in one.step(1, verb).reservations]
    assert seen == sorted(set(seen))
    assert seen[1] == 2**52 + 1


def test_a_give_back_raises_the_fence_to_the_rows(store: Side) -> None:
    publish(store, "a", 1)
    one = Acting(store)
    (held,) = one.step(1).reservations
    (next_one,) = one.step(1, "back", fence_to=held.fence + 100).reservations
    assert next_one.fence > held.fence + 100


def test_enqueue_twice_is_enqueue_once(store: Side) -> None:
    told = [Publication(1, "a"), Publication(2, "a", yields=True, delay_ms=9000), Publication(3, "b", alone=1, fence=7)]
    store.enqueue(told)
    before = store.snapshot([(1, "a"), (2, "a"), (3, "b")])
    store.enqueue(told)
    assert store.snapshot([(1, "a"), (2, "a"), (3, "b")]) == before


def test_enqueue_of_a_held_run_is_honoured_when_the_lease_ends(store: Side) -> None:
    publish(store, "a", 1)
    one = Acting(store)
    one.step(1)
    publish(store, "a", 1, life=2)
    publish(store, "a", 1, life=1)
    assert store.snapshot([(1, "a")]).entries[1].again == 2
    (again,) = one.step(1).reservations
    assert again.life == 2
    assert one.step(1).ended


def test_enqueue_of_a_waiting_run_lifts_life_and_hint_and_keeps_its_place(store: Side) -> None:
    publish(store, "a", 1, 2)
    publish(store, "a", 1, life=3, alone=1, fence=9, order=50)
    (first,) = Acting(store).step(64).reservations
    assert (first.run, first.life, first.alone) == (1, 3, True)


def test_a_newer_life_is_not_held_up_by_the_back_off_of_the_older(store: Side) -> None:
    publish(store, "a", 1, delay_ms=99_000)
    publish(store, "b", 2, delay_ms=99_000, yields=True)
    publish(store, "a", 1)
    assert Acting(store).step(64).ended, "the same life keeps its time"
    publish(store, "a", 1, life=2)
    publish(store, "b", 2, life=2)
    assert sorted(drain(store, TWO)) == [1, 2]


def test_a_lease_goes_to_the_owner_that_the_row_names(store: Side) -> None:
    publish(store, "a", 1)
    publish(store, "b", 2)
    (first,) = Acting(store, TWO).step(1).reservations
    store.hold("a", 1, False, group_concurrency=2)
    one = Acting(store)
    (mine,) = one.step(1).reservations
    reply = store.step(ONE, 2, 0, [Outcome(2, mine.fence, "owner", fence_to=5, owner="two", owner_worker=TWO.worker)])
    assert not reply.stale
    entry = store.snapshot([(2, "b")]).entries[2]
    assert (entry.consumer, entry.fence, entry.ghost) == ("two", 5, False)
    told = [*all_("hold", [first]), Outcome(2, 5, "done")]
    assert store.step(TWO, 2, 0, told).stale == ()


def test_a_lease_of_an_unknown_owner_is_healed(store: Side) -> None:
    publish(store, "a", 1)
    one = Acting(store)
    (mine,) = one.step(1).reservations
    store.step(ONE, 2, 0, [Outcome(1, mine.fence, "owner", fence_to=5, owner="gone", owner_worker="w9")])
    (again,) = Acting(store, TWO).step(64).reservations
    assert (again.healed, again.alone) == (5, True)


def test_a_bell_is_answered_by_the_first_step_of_a_consumer_that_its_watchdog_listed_before(store: Side) -> None:
    store.beat(ONE.worker, 4, {})
    assert store.enqueue([Publication(1, "a")]).bells == 1
    store.beat(ONE.worker, 4, {ONE.nonce: ONE.pid})
    Acting(store).step(1)
    assert store.enqueue([Publication(2, "b"), Publication(3, "c")]).bells == 1, "none is on its way any more"
