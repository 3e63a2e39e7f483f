"""Ends that cost the runs of a consumer no loss: announced ones, and kills that were about another run."""

from __future__ import annotations

from tests.store.acting import ONE, TWO, Acting, publish
from tests.store.conftest import Side


def test_an_announced_end_is_an_interruption(store: Side) -> None:
    publish(store, "a", 1)
    Acting(store).step(1)
    store.beat(ONE.worker, 2, {ONE.nonce: 1}, leaving=True)
    store.reap(ONE.worker)
    assert Acting(store, TWO).step(1).reservations[0].interrupted


def test_a_consumer_that_was_killed_is_an_interruption(store: Side) -> None:
    publish(store, "a", 1)
    Acting(store).step(1)
    store.reap(ONE.worker, ONE.nonce, interrupted=True)
    assert Acting(store, TWO).step(1).reservations[0].interrupted
    Acting(store, TWO).step(0)
    store.reap(TWO.worker, TWO.nonce)
    (again,) = Acting(store, ONE._replace(nonce="three")).step(1).reservations
    assert not again.interrupted
