"""What only the scripts have: keys, arguments, the server's ways, and bounded work."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from groupjobs.consumer.pace import MOST
from groupjobs.store import Consumer, Lease, Outcome, Publication, Store
from groupjobs.store.replies import BadArgument, NewerFormat
from groupjobs.store.scripts import VERBS, source
from tests.store.acting import ONE, TWO, Acting, drain, publish
from tests.store.travel import Timed

CONSTANT = {"epoch", "clock", "fence", "stats", "bells", "ended", "workers"}


def families(store: Store) -> set[str]:
    names = {key.decode().removeprefix(store.base + ":") for key in store.client.keys(store.base + "*")}
    return {name.partition(":")[0] for name in names}


@pytest.fixture
def real(client: redis.Redis) -> Store:
    """A store under the server's own TIME."""
    store = Store(client, prefix="test", queue="real", ttl=15)
    store.open(store.tick("w", 0).epoch)
    return store


def test_f4_an_empty_queue_keeps_a_constant_number_of_keys(scripts: Timed) -> None:
    for group in range(200):
        publish(scripts, f"g{group}", *range(group * 10 + 1, group * 10 + 6))
    one = Acting(scripts)
    for verb in ("retry", "back", "suspect"):
        one.step(100, verb)
    scripts.goodbye(ONE)
    assert len(drain(scripts, TWO)) == 1000
    assert families(scripts) <= CONSTANT


def test_e5_all_keys_share_one_slot(scripts: Timed) -> None:
    publish(scripts, "}odd{\x00 group", 1)
    publish(scripts, "b", 2, delay_ms=5000, yields=True)
    scripts.hold("c", 1, True)
    scripts.turn("sweep", 5)
    Acting(scripts).step(1)
    assert all(key.startswith(b"{test:q}:") for key in scripts.client.scan_iter() if key != b"test:time")


def test_f5_fifty_thousand_publications(real: Store) -> None:
    reply = real.enqueue([Publication(run, f"g{run % 7}") for run in range(1, 50_001)])
    assert reply.state == "open"
    assert sum(state.waiting for state in real.snapshot([(1, f"g{n}") for n in range(7)]).groups.values()) == 50_000
    page, found = real.entries(), set()
    while page.cursor:
        found |= set(page.entries)
        page = real.entries(page.cursor)
    assert len(found | set(page.entries)) == 50_000


def test_e1_every_verb_loads_itself_again(real: Store) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "enqueue": lambda: real.enqueue([]),
        "step": lambda: real.step(ONE, 1, 0),
        "keep": lambda: real.keep(ONE, 1, []),
        "beat": lambda: real.beat("w", 1, {}),
        "tick": lambda: real.tick("w", 1),
        "reap": lambda: real.reap("gone"),
        "withdraw": lambda: real.withdraw([(1, "a", 1)]),
        "hold": lambda: real.hold("a", 1, False),
        "snapshot": lambda: real.snapshot([]),
        "entries": real.entries,
        "drop": lambda: real.drop([(1, "a", 0, 1)]),
        "restore": lambda: real.restore(real.tick("w", 0).epoch, [(Lease(1, "a", 0, 1, 1, 0), "n", "w")]),
        "open": lambda: real.open("0"),
        "overview": real.overview,
        "ping": real.ping,
    }
    assert set(calls) == set(VERBS)
    for call in [*calls.values(), *calls.values()]:
        real.client.script_flush()
        call()


def test_a_bad_argument_is_named_before_anything_is_written(scripts: Timed) -> None:
    before = scripts.client.dbsize()
    good = Publication(1, "a")
    for bad, name in (
        (good._replace(order=2**53 + 1), "order"),
        (good._replace(life=0), "life"),
        (good._replace(fence=-1), "fence"),
        (good._replace(alone=3), "alone"),
        (good._replace(delay_ms=-5), "delay"),
    ):
        with pytest.raises(BadArgument, match=name):
            scripts.enqueue([good, bad])
    with pytest.raises(BadArgument, match="verb"):
        scripts.step(ONE, 1, 1, [Outcome(1, 1, "finish")])
    with pytest.raises(BadArgument, match="want"):
        scripts.step(ONE, 1, 5000)
    with pytest.raises(BadArgument, match="count"):
        scripts.call("withdraw", 0, "one too many")
    with pytest.raises(ValueError, match="run id"):
        scripts.enqueue([Publication(2**63, "a")])
    assert scripts.client.dbsize() == before


def test_a_newer_format_is_left_alone(scripts: Timed) -> None:
    scripts.client.hset(f"{scripts.base}:epoch", "format", 2)
    assert scripts.step(ONE, 1, 1).state == "format"
    assert scripts.enqueue([Publication(1, "a")]).state == "format"
    with pytest.raises(NewerFormat):
        scripts.hold("a", 1, True)
    assert not scripts.client.exists(f"{scripts.base}:line:a")
    scripts.client.hset(f"{scripts.base}:epoch", "format", 1)


def test_e3_at_maxmemory_only_enqueue_is_refused(real: Store) -> None:
    real.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            real.enqueue([Publication(1, "a")])
        assert real.beat("w", 1, {}).alive
        assert real.step(ONE, 1, 1).state == "open"
    finally:
        real.client.config_set("maxmemory", 0)


def test_one_turn_for_all(real: Store) -> None:
    assert [real.turn("sweep", 60) for _ in range(3)] == [True, False, False]
    assert real.turn("other", 60)


def test_a12_ten_thousand_leases_of_the_dead_are_healed_in_short_calls(real: Store) -> None:
    real.enqueue([Publication(run, f"g{run}") for run in range(1, 10_001)])
    for number in range(20):
        who = Consumer(f"c{number}", f"w{number % 4}", number + 1)
        reply = real.step(who, 1, 500)
        assert len(reply.reservations) == 500
    commands = [counted(real, partial(real.reap, f"w{number}")) for number in range(4)]
    while real.overview().dead:
        commands.append(counted(real, real.reap))
    assert real.overview().stats["healed"] == 10_000
    assert len(commands) >= 100
    assert max(commands) < 3_000


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not tell what a thread computed")
def test_a12_no_call_computes_for_ten_milliseconds_while_leases_are_healed(real: Store) -> None:
    real.enqueue([Publication(run, f"g{run}") for run in range(1, 5_001)])
    for number in range(20):
        real.step(Consumer(f"c{number}", f"w{number % 4}", number + 1), 1, 250)
    real.beat("live", 2, {})
    asked = [(run, f"g{run}") for run in range(1, 51)]
    calls: list[Callable[[], object]] = [partial(real.reap, "w0"), partial(real.reap, "w1"), real.reap]
    calls += [partial(real.snapshot, asked), real.entries, partial(real.tick, "live", 2), real.overview]
    calls += [partial(real.step, Consumer("L", "live", 1), 1, 96)]
    for call in calls:
        assert computed(real, call) < 10, call


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not tell what a thread computed")
def test_the_largest_batch_is_settled_and_the_next_reserved_within_ten_milliseconds(real: Store) -> None:
    real.enqueue([Publication(run, f"g{run}") for run in range(1, 4 * MOST + 1)])
    who, done = Consumer("L", "live", 1), list[Outcome]()
    for number in range(1, 5):
        call = partial(real.step, who, number, MOST, done)
        assert computed(real, call) < 10
        reply = call()  # the same number again: the same leases
        assert len(reply.reservations) == MOST
        done = [Outcome(r.run, r.fence, "done") for r in reply.reservations]


def computed(store: Store, call: Callable[[], object]) -> float:
    """Milliseconds that the server's main thread computed for one call, however busy the machine is."""
    pid = store.client.info("server")["process_id"]
    told = Path(f"/proc/{pid}/task/{pid}/schedstat")
    before = int(told.read_text().split()[0])
    call()
    return (int(told.read_text().split()[0]) - before) / 1e6


def counted(store: Store, call: Callable[[], object]) -> int:
    """How many commands the server executed in one script call."""
    store.client.config_resetstat()
    call()
    return sum(int(found["calls"]) for found in store.client.info("commandstats").values())


def test_strays_of_a_group_are_mended(scripts: Timed) -> None:
    publish(scripts, "a", 1)
    scripts.client.sadd(f"{scripts.base}:held:a", f"{7:020d}")
    assert scripts.snapshot([(1, "a")]).groups["a"].strays == (7,)
    scripts.reap(group="a")
    assert drain(scripts) == [1]


def test_a_lease_whose_consumer_redis_does_not_know_is_mended(scripts: Timed) -> None:
    publish(scripts, "a", 1, 2)
    Acting(scripts).step(1)
    scripts.client.hdel(f"{scripts.base}:consumers", ONE.nonce)
    assert scripts.snapshot([(1, "a")]).entries[1].ghost
    assert scripts.reap(group="a").healed == 1
    assert drain(scripts, TWO) == [1, 2]


def test_every_script_says_what_it_does() -> None:
    for verb in VERBS:
        for word in ("Purpose:", "KEYS:", "ARGV:", "Returns:", "Keeps:"):
            assert f"-- {word}" in source(verb)
        assert source(verb).startswith("#!lua\n" if verb == "enqueue" else "#!lua flags=allow-oom\n")
