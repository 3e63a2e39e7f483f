"""Ghosts: the leaked state is built directly, and each entry heals it with the others off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from groupjobs import recovery
from groupjobs.models import JobAttempt, JobProgress, JobRun
from groupjobs.store import Consumer, Store
from tests.admin.test_actions import done
from tests.core.dying import dies
from tests.core.ghosts import begin, key, member, reserve, row, someone
from tests.core.rows import QUEUE, attempts, change
from tests.core.serving import drain, pk_of, serve, statuses, traces
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until
from tests.traps.leaks import fall_silent, found, held, recover_ghosts, two

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]

Journal = Callable[[], list[list[Any]]]
Heal = Callable[[Store, Consumer], object]


def by_admin(store: Store, consumer: Consumer) -> None:
    """Somebody clicks."""
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))
    done(boss, "recover", *JobRun.objects.order_by("pk"))


ENTRIES: dict[str, Heal] = {
    "step": lambda store, _: store.step(someone(), 1, 0),
    "tick": lambda store, _: store.tick("", 0),
    "reap of the worker": lambda store, consumer: store.reap(worker=consumer.worker),
    "reap of the consumer": lambda store, consumer: store.reap(worker=consumer.worker, consumer=consumer.nonce),
    "reap of the process": lambda store, consumer: store.reap(worker=consumer.worker, pid=consumer.pid),
    "reap of the group": lambda store, _: store.reap(group="g"),
    "recover": lambda *_: recovery.recover(),
    "sweep": lambda *_: recovery.sweep(QUEUE),
    "recover_ghosts": lambda *_: recover_ghosts(),
    "admin": by_admin,
}
by_each_entry = pytest.mark.parametrize("entry", ENTRIES)


@by_each_entry
def test_a2_every_entry_heals_a_ghost_in_the_same_way(entry: str, store: Store, journal: Journal) -> None:
    runs = two()
    ghost = held(store)
    fall_silent(store, ghost)
    fence = row(runs[0]).fence
    ENTRIES[entry](store, ghost)
    seen = store.snapshot([(pk_of(run), "g") for run in runs])
    entries = [seen.entries[pk_of(run)] for run in runs]
    assert [(e.place, e.consumer, e.ghost, e.alone > 0) for e in entries] == [
        ("line", "", False, True),
        ("line", "", False, False),
    ]
    assert (entries[0].healed, seen.groups["g"].held, seen.groups["g"].ready) == (fence, (), True)
    assert [trace for trace in traces(store) if "leases" in trace or "dead" in trace] == []
    drain()
    assert journal() == [["A"], ["B"]]
    assert [(row(run).losses, row(run).attempts) for run in runs] == [(1, 2), (0, 1)]
    assert attempts(row(runs[0])) == [(fence, "lost")]
    assert traces(store) == []


@by_each_entry
def test_a2_no_entry_touches_a_lease_of_the_living(entry: str, store: Store) -> None:
    """The group's other member is a ghost, so that every entry has something to do."""
    store.hold("g", 1, False, group_concurrency=2)
    runs = two()
    living, ghost = held(store), held(store)
    fall_silent(store, ghost)
    before = JobRun.objects.filter(pk=pk_of(runs[0])).values().get()
    ENTRIES[entry](store, ghost)
    seen = store.snapshot([(pk_of(run), "g") for run in runs])
    mine, theirs = (seen.entries[pk_of(run)] for run in runs)
    assert (mine.place, mine.consumer, mine.fence) == ("leased", living.nonce, before["fence"])
    assert theirs.place == "line"
    assert JobRun.objects.filter(pk=pk_of(runs[0])).values().get() == before
    assert store.step(living, 2, 0).stale == ()


# --- states that no script of ours makes


def no_hash(store: Store, runs: list[Any]) -> None:
    fall_silent(store, held(store))
    store.client.delete(key(store, "run", member(runs[0])))


def no_hash_and_not_begun(store: Store, runs: list[Any]) -> None:
    fall_silent(store, held(store, begun=False))
    store.client.delete(key(store, "run", member(runs[0])))


def held_twice(store: Store, runs: list[Any]) -> None:
    ghost = held(store)
    store.client.sadd(key(store, "leases", "another"), member(runs[0]))
    fall_silent(store, ghost)


def two_held(store: Store, runs: list[Any]) -> None:
    first = held(store)
    store.client.delete(key(store, "held", "g"))
    store.client.zadd(key(store, "ready"), {"g": 0})
    second = held(store)
    store.client.sadd(key(store, "held", "g"), member(runs[0]))
    fall_silent(store, first)
    fall_silent(store, second)


def leased_and_ended(store: Store, runs: list[Any]) -> None:
    """The status differs: the row has ended, and Redis says that it is with somebody."""
    fall_silent(store, held(store))
    change(row(runs[0]), status="SUCCEEDED")


def leased_and_in_line(store: Store, runs: list[Any]) -> None:
    fall_silent(store, held(store))
    store.client.zadd(key(store, "line", "g"), {member(runs[0]): 0})


@pytest.mark.parametrize(
    "leak", [no_hash, no_hash_and_not_begun, held_twice, two_held, leased_and_ended, leased_and_in_line]
)
def test_a5_recover_ghosts_names_what_is_broken_and_the_group_moves_on(
    leak: Callable[[Store, list[Any]], None], store: Store, journal: Journal
) -> None:
    runs = two()
    leak(store, runs)
    report = recover_ghosts()
    assert found(report)
    named = {line["run"] for line in report["details"]} | {line["group"] for line in report["details"]}
    assert pk_of(runs[0]) in named
    assert "g" in named
    assert found(recover_ghosts()) == {}
    drain()
    assert journal() == ([["B"]] if leak is leased_and_ended else [["A"], ["B"]])
    assert statuses(runs) == ["SUCCEEDED"] * 2
    assert [trace for trace in traces(store) if "leases:another" not in trace] == []


# --- the sweep


def test_a7_the_sweep_is_no_run_and_waits_for_none(store: Store, journal: Journal) -> None:
    """Everything in the queue is stuck, and nobody serves it."""
    runs = two()
    fall_silent(store, held(store))
    rows = JobRun.objects.count()
    report = recovery.sweep(QUEUE)
    assert report is not None
    assert report.counts["requeued"] == 1
    assert JobRun.objects.count() == rows
    drain()
    assert statuses(runs) == ["SUCCEEDED"] * 2


def test_a7_a_sweep_that_died_keeps_its_turn_for_one_interval_only(store: Store, settings: Any) -> None:
    settings.GROUPJOBS = {**settings.GROUPJOBS, "SWEEP_INTERVAL": 1}
    two()
    fall_silent(store, held(store))
    dies(lambda: recovery.sweep(QUEUE), "after", "groupjobs.store.Store.turn")
    assert recovery.sweep(QUEUE) is None, "its turn is not over"
    report = wait_until(lambda: recovery.sweep(QUEUE), 5)
    assert report is not None
    assert report.counts["requeued"] == 1


# --- retention


def test_a11_recovery_needs_no_record_that_retention_deletes(store: Store, journal: Journal, settings: Any) -> None:
    settings.GROUPJOBS = {**settings.GROUPJOBS, "RETENTION": dict.fromkeys(("succeeded", "failed", "cancelled"), 0.0)}
    before = jobs.fails.using(group="g").enqueue(label="F")
    serve()
    runs = two()
    fall_silent(store, held(store))
    recovery.prune()
    assert not JobRun.objects.filter(pk=pk_of(before)).exists()
    JobAttempt.objects.all().delete()
    JobProgress.objects.all().delete()
    assert found(recover_ghosts()) == {"requeued": 1}
    drain()
    assert journal() == [["F"], ["A"], ["B"]]
    assert statuses(runs) == ["SUCCEEDED"] * 2


def test_a4_many_ghosts_are_counted_once_by_all_callers_together(store: Store) -> None:
    """One caller after the other: what the first did, no later one finds."""
    runs = jobs.note.enqueue_many([{"label": f"x{n}", "group": f"x{n}"} for n in range(20)])
    ghost = someone()
    begin(ghost, reserve(store, ghost))
    fall_silent(store, ghost)
    counts = [recover_ghosts("--limit", "7")["requeued"] for _ in range(4)]
    assert counts == [7, 7, 6, 0]
    sweep = recovery.sweep(QUEUE)
    assert sweep is not None
    assert sweep.counts["requeued"] == 0
    assert [row(run).losses for run in runs] == [0] * 20
