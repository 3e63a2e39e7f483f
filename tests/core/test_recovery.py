"""`recover`: what it finds, what it leaves alone, and that it finds it once."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from groupjobs import control, ledger, recovery
from groupjobs.models import JobRun
from groupjobs.recovery import COUNTS, Scope, routine
from groupjobs.store import Publication, Store, store_for
from tests.core.ghosts import begin, key, live, member, reserve, row, some, someone, taken, vanish
from tests.core.rows import QUEUE, attempts, change, new, race, running
from tests.core.serving import Watched, drain, known, pk_of, serve, serving, statuses, traces
from tests.core.told import labels
from tests.jobsapp import jobs
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

Journal = Callable[[], list[list[Any]]]
ABANDON = Scope(abandon=True)


def found(report: recovery.Report) -> dict[str, int]:
    """The counts that say that something was done."""
    return {name: count for name, count in report.counts.items() if count and name not in ("examined", "rung")}


def nothing_more() -> None:
    assert found(recovery.recover()) == {}


# --- what is well


def test_there_is_nothing_to_do_when_all_is_well(store: Store) -> None:
    assert found(recovery.recover()) == {}
    jobs.note.enqueue_many([{"label": "A"}] * 3)
    jobs.note.using(run_after=in_seconds(60)).enqueue(label="later")
    jobs.asks_again.using(group="r").enqueue(label="B", after=60)
    drain(lambda: JobRun.objects.filter(status="SUCCEEDED").count() == 3)
    report = recovery.recover()
    assert found(report) == {}
    assert report.counts["examined"] == 2
    assert set(report.as_dict()) == {*COUNTS, "dry_run", "queues", "details"}


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_a3_leases_of_a_living_worker_are_kept(store: Store) -> None:
    begun, reserved = some(2)
    consumer = taken(store, [begun, reserved], begun=False)
    live(store, consumer)
    change(row(begun), status="RUNNING", fence=10**6, worker=consumer.worker, consumer=consumer.nonce)
    change(row(begun), fence=store.snapshot([(pk_of(begun), "x0")]).entries[pk_of(begun)].fence)
    before = list(JobRun.objects.order_by("id").values())
    for scope in (Scope(), ABANDON, Scope(group="x0"), Scope(runs=(pk_of(begun),)), Scope(patience=0.5)):
        assert found(recovery.recover(scope)) in ({"kept": 1}, {})
    assert list(JobRun.objects.order_by("id").values()) == before
    assert {
        entry.consumer for entry in store.snapshot([(pk_of(begun), "x0"), (pk_of(reserved), "x1")]).entries.values()
    } == {consumer.nonce}


def test_a3_a_long_run_is_kept_while_another_worker_starts_and_recovers(
    store: Store, journal: Journal, gate: Any
) -> None:
    result = jobs.waits.enqueue(label="A", gate=str(gate))
    with Watched() as watched, serving(watched=watched):
        wait_until(journal)
        for _ in range(3):
            recovery.sweep(QUEUE)
            assert found(recovery.recover()) == {"kept": 1}
            serve()
        gate.touch()
        wait_until(lambda: row(result).status == "SUCCEEDED")
    assert journal() == [["A", "begins"], ["A", "ends"]]
    assert row(result).attempts == 1


# --- ghosts


@pytest.mark.parametrize("alone", [True, False])
def test_a_ghost_that_had_begun_is_requeued(alone: bool, store: Store, journal: Journal) -> None:
    runs = some(1 if alone else 4)
    consumer = taken(store, runs)
    vanish(store, consumer)
    fences = [row(run).fence for run in runs]
    report = recovery.recover()
    assert found(report) == {"requeued": len(runs)}
    assert [(line["run"], line["verdict"], line["worker"]) for line in report.details] == [
        (pk_of(run), "requeued", consumer.worker) for run in runs
    ]
    for run, fence in zip(runs, fences, strict=True):
        seen = row(run)
        assert (seen.status, seen.fence, seen.losses, seen.alone) == ("READY", fence, int(alone), True)
        assert attempts(seen) == [(fence, "lost")]
    nothing_more()
    drain()
    assert sorted(labels(journal)) == sorted(f"x{n}" for n in range(len(runs)))
    assert traces(store) == []


def test_a_ghost_that_had_not_begun_is_released(store: Store, journal: Journal) -> None:
    runs = some(3)
    vanish(store, taken(store, runs, begun=False))
    assert found(recovery.recover()) == {"released": 3}
    assert [(row(run).losses, row(run).attempts, row(run).alone) for run in runs] == [(0, 0, False)] * 3
    nothing_more()
    drain()
    assert len(journal()) == 3
    assert traces(store) == []


def test_a_ghost_over_its_budget_is_abandoned(store: Store) -> None:
    [run] = some(1, max_losses=2)
    change(row(run), losses=2)
    vanish(store, taken(store, [run]))
    assert found(recovery.recover()) == {"abandoned": 1, "reported": 1, "dropped": 1}
    seen = row(run)
    assert (seen.status, seen.reason, seen.losses) == ("ABANDONED", "too_many_losses", 3)
    assert seen.abandon_reported_at is not None
    nothing_more()
    assert traces(store) == []


def test_a_ghost_of_a_worker_that_was_leaving_costs_nothing(store: Store) -> None:
    [run] = some(1, max_losses=0)
    consumer = taken(store, [run])
    store.beat(consumer.worker, 1, {consumer.nonce: consumer.pid}, leaving=True)
    store.reap(worker=consumer.worker)
    assert found(recovery.recover()) == {"requeued": 1}
    assert (row(run).status, row(run).losses) == ("READY", 0)


def test_a6_an_incarnation_does_not_live_in_the_name_of_another(store: Store) -> None:
    """A restarted pod with the same host and pid makes nobody look alive."""
    [run] = some(1)
    consumer = taken(store, [run])
    host, pid, _ = consumer.worker.split(":")
    vanish(store, consumer)
    live(store, consumer._replace(worker=f"{host}:{pid}:another", nonce="another"))
    assert found(recovery.recover()) == {"requeued": 1}


def test_a6_a_consumer_that_its_living_watchdog_does_not_list_is_a_ghost(store: Store) -> None:
    [run] = some(1)
    consumer = taken(store, [run])
    store.beat(consumer.worker, 1, {consumer.nonce: consumer.pid})
    store.client.hdel(key(store, "consumers"), consumer.nonce)
    store.beat(consumer.worker, 1, {})
    assert found(recovery.recover()) == {"requeued": 1}


def test_a_silent_worker_gets_its_ttl_and_no_more(short_ttl: None, store: Store) -> None:
    [run] = some(1)
    consumer = taken(store, [run])
    store.beat(consumer.worker, 1, {consumer.nonce: consumer.pid})
    assert found(recovery.recover(Scope(patience=10))) == {"kept": 1}, "it has just beaten"
    until = time.monotonic() + 0.8
    wait_until(lambda: time.monotonic() > until)
    [line] = recovery.recover().details
    assert (line["verdict"], line["reason"]) == ("kept", "its worker is silent")
    assert found(recovery.recover(Scope(patience=10))) == {"requeued": 1}
    assert row(run).losses == 1


def test_a_recovered_run_keeps_its_place(store: Store, journal: Journal) -> None:
    orders = [("c", 0), ("d", 2**53), ("a", -(2**53)), ("b", -1)]
    for label, order in orders:
        jobs.note.using(order=order).enqueue(label=label)
    consumer = someone()
    begin(consumer, reserve(store, consumer, 2))
    vanish(store, consumer)
    assert found(recovery.recover()) == {"requeued": 2}
    drain()
    assert labels(journal) == ["a", "b", "c", "d"]


# --- rows and entries that do not fit


def test_rows_that_redis_does_not_know_are_published(store: Store, journal: Journal) -> None:
    runs = new(3, job=jobs.noop.job_name)
    flagged = change(new(1, group="f")[0], unpublished=True)
    report = recovery.recover()
    assert found(report) == {"republished": 4}
    assert known(store, [*runs, flagged]) == {run.pk for run in (*runs, flagged)}
    assert not row(flagged).unpublished
    nothing_more()
    drain()
    assert statuses(runs) == ["SUCCEEDED"] * 3


def test_a5_a_running_row_without_a_trace_in_redis_is_a_loss(store: Store) -> None:
    alone, mate = running(40, alone=True, group="a"), running(41, group="b")
    assert found(recovery.recover()) == {"requeued": 2}
    assert [(row(run).status, row(run).losses, row(run).alone) for run in (alone, mate)] == [
        ("READY", 1, True),
        ("READY", 0, True),
    ]
    assert known(store, [alone, mate]) == {alone.pk, mate.pk}
    nothing_more()


def test_a_running_row_whose_entry_waits_in_line_is_a_loss(store: Store) -> None:
    """Its lease was healed, and the next attempt has not begun."""
    [run] = some(1)
    consumer = taken(store, [run])
    store.reap(worker=consumer.worker)
    assert found(recovery.recover()) == {"requeued": 1}
    assert (row(run).losses, attempts(row(run))) == (1, [(row(run).fence, "lost")])
    drain()
    assert (row(run).losses, row(run).attempts) == (1, 2)


def test_an_older_life_in_redis_is_lifted(store: Store, journal: Journal) -> None:
    run = jobs.fails.enqueue(label="A")
    drain()
    store.enqueue([Publication(pk_of(run), f"\0{pk_of(run)}", life=1)])
    change(row(run), status="READY", finished_at=None, life=2, failures=0, attempts=0)
    assert found(recovery.recover()) == {"republished": 1}
    drain()
    assert labels(journal) == ["A", "A"]
    assert traces(store) == []


def test_a_suspect_that_redis_forgot_is_told_again(store: Store) -> None:
    [run] = some(1)
    change(row(run), alone=True)
    assert found(recovery.recover()) == {"republished": 1}
    assert store.snapshot([(pk_of(run), "x0")]).entries[pk_of(run)].alone == 1
    nothing_more()


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "ABANDONED", "CANCELLED"])
def test_b5_entries_of_terminal_rows_are_dropped(status: str, store: Store, journal: Journal) -> None:
    runs = jobs.note.enqueue_many([{"label": label} for label in "ABC"])
    change(row(runs[0]), status=status, abandon_reported_at=Now() if status == "ABANDONED" else None)
    change(row(runs[2]), status=status, abandon_reported_at=Now() if status == "ABANDONED" else None)
    report = recovery.recover()
    assert found(report) == {"dropped": 2}
    assert {line["run"] for line in report.details} == {pk_of(runs[0]), pk_of(runs[2])}
    nothing_more()
    drain()
    assert labels(journal) == ["B"]
    assert traces(store) == []


def test_entries_without_a_row_are_dropped_wherever_they_are(short_ttl: None, store: Store) -> None:
    waiting, scheduled, leased = some(3)
    store.client.flushall()
    JobRun.objects.all().delete()
    wait_until(lambda: recovery.rebuild(QUEUE))
    store.enqueue([Publication(pk_of(leased), "x2")])
    ghost = someone()
    reserve(store, ghost)
    store.enqueue([Publication(pk_of(waiting), "x0")])
    store.enqueue([Publication(pk_of(scheduled), "x1", delay_ms=60_000, yields=True)])
    store.enqueue([Publication(pk_of(scheduled) + 100, "x4", life=3, fence=5, alone=1)])
    vanish(store, ghost)
    assert found(recovery.recover()) == {"dropped": 4}
    nothing_more()
    assert traces(store) == []


def test_a_living_consumer_s_lease_is_not_dropped_although_its_row_is_gone(store: Store) -> None:
    [run] = some(1)
    consumer = taken(store, [run])
    live(store, consumer)
    JobRun.objects.all().delete()
    assert found(recovery.recover()) == {}
    assert store.keep(consumer, 1, []).lost == ()
    assert store.overview().consumers[0].leases == 1


# --- states that no script of ours makes


def test_a5_a_held_member_without_a_hash(store: Store, journal: Journal) -> None:
    """groupmq's leak: the group's lock names a job that is no more."""
    run = jobs.note.enqueue(label="A", group="g")
    store.client.sadd(key(store, "held", "g"), member(pk_of(run) + 1000))
    store.client.zrem(key(store, "ready"), "g")
    serve()
    assert journal() == []
    report = recovery.recover()
    assert [line["group"] for line in report.details] == ["g"]
    nothing_more()
    drain()
    assert labels(journal) == ["A"]
    assert traces(store) == []


def test_a5_a_held_member_of_a_group_with_nothing_else(store: Store, journal: Journal) -> None:
    store.client.sadd(key(store, "held", "g"), member(1000))
    recovery.recover()
    assert traces(store) == []
    jobs.note.enqueue(label="A", group="g")
    drain()
    assert labels(journal) == ["A"]


def test_a5_a_run_held_twice(store: Store, journal: Journal) -> None:
    run = jobs.note.enqueue(label="A", group="g")
    behind = jobs.note.enqueue(label="B", group="g")
    first, second = someone(), someone()
    begin(first, reserve(store, first, 1))
    store.client.sadd(key(store, "leases", second.nonce), member(run))
    vanish(store, first)
    report = recovery.recover()
    assert report.counts["requeued"] == 1
    drain()
    recovery.recover()
    assert labels(journal) == ["A", "B"]
    assert [row(one).losses for one in (run, behind)] == [1, 0]
    assert [trace for trace in traces(store) if "leases" not in trace] == []


def test_a5_two_runs_held_in_a_group_of_one(store: Store, journal: Journal) -> None:
    runs = jobs.note.enqueue_many([{"label": label} for label in "ABC"])
    first, second = someone(), someone()
    begin(first, reserve(store, first, 1))
    store.client.delete(key(store, "held", "g"))
    store.client.zadd(key(store, "ready"), {"g": 0})
    begin(second, reserve(store, second, 1))
    store.client.sadd(key(store, "held", "g"), member(runs[0]))
    assert statuses(runs) == ["RUNNING", "RUNNING", "READY"]
    vanish(store, first)
    vanish(store, second)
    assert found(recovery.recover()) == {"requeued": 2}
    nothing_more()
    drain()
    assert labels(journal) == ["A", "B", "C"]
    assert traces(store) == []


def test_a5_one_of_two_in_a_group_of_one_lives(store: Store) -> None:
    runs = jobs.note.enqueue_many([{"label": label} for label in "AB"])
    first, second = someone(), someone()
    begin(first, reserve(store, first, 1))
    store.client.delete(key(store, "held", "g"))
    store.client.zadd(key(store, "ready"), {"g": 0})
    begin(second, reserve(store, second, 1))
    store.client.sadd(key(store, "held", "g"), member(runs[0]))
    vanish(store, first)
    live(store, second)
    assert found(recovery.recover()) == {"requeued": 1, "kept": 1}
    assert statuses(runs) == ["READY", "RUNNING"]
    state = store.snapshot([(pk_of(runs[0]), "g")]).groups["g"]
    assert (state.held, state.ready) == ((pk_of(runs[1]),), False)


@pytest.mark.parametrize("field", ["plain", "timed"])
def test_a5_a_hash_that_is_in_no_place(field: str, store: Store, journal: Journal) -> None:
    """Neither in a line nor leased, and its time is a day away: the row says that it may run now."""
    run = jobs.note.enqueue(label="A", group="g")
    seconds, _ = store.client.time()
    store.client.zrem(key(store, "line", "g"), member(run))
    store.client.zrem(key(store, "ready"), "g")
    stale = {"g": "g", "o": "0", "l": "1", "f": "0", "a": "0"}
    if field == "timed":
        stale["t"] = str((seconds + 86400) * 1000)
    store.client.hset(key(store, "run", member(run)), mapping=stale)
    assert found(recovery.recover()) == {"republished": 1}
    drain()
    assert labels(journal) == ["A"]
    assert traces(store) == []


def test_a_group_that_is_missing_among_the_ready(store: Store, journal: Journal) -> None:
    jobs.note.enqueue(label="A", group="g")
    store.client.zrem(key(store, "ready"), "g")
    report = recovery.recover()
    assert [line["group"] for line in report.details] == ["g"]
    nothing_more()
    drain()
    assert labels(journal) == ["A"]


def test_a_ready_group_without_a_line(store: Store, journal: Journal) -> None:
    store.client.zadd(key(store, "ready"), {"nothing": 0, "nothing else": 0})
    jobs.note.enqueue(label="A", group="g")
    drain()
    assert labels(journal) == ["A"]
    assert traces(store) == []


# --- several recoveries at once


def test_a4_two_recoveries_at_once_add_up(store: Store) -> None:
    runs = some(40)
    first = taken(store, runs)
    vanish(store, first)
    published = new(10, group="n")
    reports = race(*[recovery.recover] * 3)
    total = Counter[str]()
    for report in reports:
        total.update(found(report))
    assert total["requeued"] == 40
    assert [row(run).losses for run in runs] == [0] * 40
    assert JobRun.objects.filter(status="READY").count() == 50
    assert known(store, [*runs, *published]) == {pk_of(run) for run in (*runs, *published)}
    assert [attempts(row(run)) for run in runs[:3]] == [[(row(run).fence, "lost")] for run in runs[:3]]
    nothing_more()


def test_a4_two_recoveries_at_once_abandon_once(store: Store, journal: Journal) -> None:
    runs = [jobs.precious.using(group=f"x{n}").enqueue(label=f"x{n}") for n in range(6)]
    for _ in runs:
        consumer = someone()
        begin(consumer, reserve(store, consumer, 1))
        vanish(store, consumer)
    reports = race(*[recovery.recover] * 2)
    assert sum(report.counts["abandoned"] for report in reports) == 6
    wait_until(lambda: not JobRun.objects.filter(abandon_reported_at=None).exists())
    assert Counter(words[1] for words in journal()) == dict.fromkeys([pk_of(run) for run in runs], 1)
    assert {row(run).losses for run in runs} == {1}


def test_a_recovery_and_consumers_at_once(store: Store, journal: Journal) -> None:
    runs = [jobs.note.enqueue(label=f"{n}", group=f"x{n % 8}") for n in range(80)]
    vanish(store, taken_first(store, 8))
    with serving(), serving():
        for _ in range(10):
            recovery.recover()
        wait_until(lambda: not JobRun.objects.exclude(status="SUCCEEDED").exists())
    assert Counter(labels(journal)) == {f"{n}": 1 for n in range(80)}
    assert {row(run).losses for run in runs} == {0}
    for group in range(8):
        said = [int(label) for label in labels(journal) if int(label) % 8 == group]
        assert said == sorted(said)


def taken_first(store: Store, count: int) -> Any:
    consumer = someone()
    begin(consumer, reserve(store, consumer, count))
    return consumer


# --- scopes, --abandon, dry runs


def test_abandon_ends_every_ghost_and_finds_none_the_second_time(store: Store) -> None:
    begun, reserved = some(2)
    first, second = someone(), someone()
    begin(first, reserve(store, first, 1))
    reserve(store, second, 1)
    vanish(store, first)
    vanish(store, second)
    lost = running(40, group="l")
    waits = jobs.note.enqueue(label="W", group="w")
    unknown = new(1, group="u")[0]
    report = recovery.recover(ABANDON)
    assert report.counts["abandoned"] == 3
    assert statuses([begun, reserved, lost]) == ["ABANDONED"] * 3
    assert statuses([waits, unknown]) == ["READY", "READY"]
    assert recovery.recover(ABANDON).counts["abandoned"] == 0
    nothing_more()
    drain()
    assert statuses([waits, unknown]) == ["SUCCEEDED", "SUCCEEDED"]
    assert traces(store) == []


def test_abandon_leaves_the_living_alone(store: Store) -> None:
    runs = some(2)
    consumer = taken(store, runs)
    live(store, consumer)
    assert found(recovery.recover(ABANDON)) == {"kept": 2}
    assert statuses(runs) == ["RUNNING"] * 2


def test_a_dry_run_changes_nothing(store: Store) -> None:
    begun, reserved, entry = some(3)
    first, second = someone(), someone()
    begin(first, reserve(store, first, 1))
    reserve(store, second, 1)
    vanish(store, first)
    vanish(store, second)
    running(40, group="l")
    new(2, group="u")
    change(row(entry), status="CANCELLED")
    poison = running(41, alone=True, group="p", losses=2)
    abandoned = change(new(1, group="a")[0], status="ABANDONED")
    rows = list(JobRun.objects.order_by("id").values())
    redis = dump(store)
    report = recovery.recover(dry_run=True)
    assert report.dry_run
    assert list(JobRun.objects.order_by("id").values()) == rows
    assert dump(store) == redis
    counts = found(report)
    assert counts == {"requeued": 2, "abandoned": 1, "republished": 2, "released": 1, "dropped": 1, "reported": 2}
    real = found(recovery.recover())
    assert real == counts, "also the abandonment that it made is reported"
    assert [row(run).status for run in (begun, reserved, poison, abandoned)] == [
        "READY",
        "READY",
        "ABANDONED",
        "ABANDONED",
    ]


def dump(store: Store) -> dict[str, Any]:
    """Everything in Redis but the clock, which every script advances."""
    names = sorted(name for name in store.client.keys("*") if not name.endswith(b":clock"))
    return {name: store.client.dump(name) for name in names}


@pytest.mark.parametrize(
    ("scope", "moved"), [(Scope(group="x0"), ["x0"]), (Scope(queue=QUEUE), ["x0", "x1", "x2"]), (Scope(limit=2), None)]
)
def test_scopes(scope: Scope, moved: list[str] | None, store: Store) -> None:
    runs = some(3)
    vanish(store, taken(store, runs))
    assert found(recovery.recover(scope)) == {"requeued": 2 if moved is None else len(moved)}
    ready = JobRun.objects.filter(status="READY")
    assert ready.count() == (2 if moved is None else len(moved))
    if moved is not None:
        assert sorted(ready.values_list("group", flat=True)) == moved


def test_a_scope_of_runs(store: Store) -> None:
    runs = some(3)
    vanish(store, taken(store, runs))
    assert found(recovery.recover(Scope(runs=(pk_of(runs[1]),)))) == {"requeued": 1}
    assert statuses(runs) == ["RUNNING", "READY", "RUNNING"]


@pytest.mark.parametrize("kind", ["republished", "dropped"])
def test_the_limit_bounds_every_kind_of_move(kind: str, store: Store) -> None:
    if kind == "republished":
        new(5, group="u")
    else:
        for run in some(5):
            change(row(run), status="CANCELLED")
    reports = [recovery.recover(Scope(limit=2)) for _ in range(3)]
    assert [report.counts[kind] for report in reports] == [2, 2, 1]
    assert [len(report.details) for report in reports] == [2, 2, 1]


def test_holds_are_mirrored(store: Store) -> None:
    jobs.note.enqueue(label="A")
    control.hold(QUEUE, "g", "look")
    control.hold(QUEUE, "", "all of it")
    store.client.delete(key(store, "groups"))
    recovery.recover()
    state = store.snapshot([(1, "g")]).groups["g"]
    assert (state.held_flag, store.overview().paused) == (True, True)


# --- Redis lost its memory


def test_e2_a_flush_keeps_what_lives_and_takes_the_rest_for_lost(short_ttl: None, store: Store) -> None:
    living, dead = some(2)
    first, second = someone(), someone()
    begin(first, reserve(store, first, 1))
    begin(second, reserve(store, second, 1))
    behind = jobs.note.enqueue(label="B", group="x0")
    store.client.flushall()
    refused = recovery.recover()
    assert found(refused) == {"refused": 1}
    assert statuses([living, dead]) == ["RUNNING", "RUNNING"]
    until = []

    def rebuilt() -> bool:
        live(store, first)
        until.append(statuses([living, dead]))
        return recovery.rebuild(QUEUE)

    wait_until(rebuilt)
    assert statuses([living, dead]) == ["RUNNING", "READY"]
    assert row(dead).losses == 1
    assert set(map(tuple, until)) == {("RUNNING", "RUNNING")}, "nothing was judged before the TTL was over"
    live(store, first)
    assert found(recovery.recover()) == {"kept": 1}
    state = store.snapshot([(pk_of(behind), "x0")]).groups["x0"]
    assert (state.held, state.waiting, state.ready) == ((pk_of(living),), 1, False)
    reply = store.step(first, 2, 0, [])
    assert reply.stale == ()


def test_recovery_waits_for_a_rebuild(short_ttl: None, store: Store, journal: Journal) -> None:
    runs = jobs.note.enqueue_many([{"label": str(n)} for n in range(5)])
    store.client.flushall()
    assert found(recovery.recover(Scope(patience=10))) == {}
    assert known(store, runs) == {pk_of(run) for run in runs}
    drain()
    assert labels(journal) == [str(n) for n in range(5)]


def test_a_dry_run_does_not_rebuild(short_ttl: None, store: Store) -> None:
    jobs.note.enqueue(label="A")
    store.client.flushall()
    assert found(recovery.recover(Scope(patience=2), dry_run=True)) == {"refused": 1}
    assert store.snapshot([]).state == "rebuild"


def test_a_rebuild_restores_times_holds_hints_and_lives(short_ttl: None, store: Store) -> None:
    jobs.note.using(run_after=in_seconds(60)).enqueue(label="late", group="s")
    retried = jobs.asks_again.using(group="r").enqueue(label="R", after=60)
    drain(lambda: row(retried).failures == 1)
    suspect = jobs.note.enqueue(label="S", group="a")
    change(row(suspect), alone=True, fence=77)
    second = jobs.fails.using(group="l").enqueue(label="L")
    drain(lambda: row(second).status == "FAILED" and row(suspect).status == "SUCCEEDED")
    suspect = jobs.note.enqueue(label="S", group="a")
    control.hold(QUEUE, "l", "look")
    control.retry([pk_of(second)])
    change(row(suspect), alone=True, fence=77)
    store.client.flushall()
    wait_until(lambda: recovery.rebuild(QUEUE))
    asked = [(run.pk, run.group) for run in JobRun.objects.filter(status="READY")]
    seen = store.snapshot(asked)
    places = {dict(asked)[run]: (entry.place, entry.life, entry.alone) for run, entry in seen.entries.items()}
    assert places == {
        "s": ("scheduled", 1, 0),
        "r": ("line", 1, 0),
        "a": ("line", 1, 1),
        "l": ("line", 2, 0),
    }
    assert seen.entries[pk_of(suspect)].fence == 77
    assert 30_000 < (seen.groups["r"].later_ms or 0) <= 60_000
    assert {group for group, state in seen.groups.items() if state.ready} == {"a"}
    assert seen.groups["l"].held_flag


def test_two_rebuilds_at_once(short_ttl: None, store: Store, journal: Journal) -> None:
    jobs.note.enqueue_many([{"label": str(n)} for n in range(50)])
    lost = running(40, alone=True, group="l", job=jobs.noop.job_name)
    store.client.flushall()
    race(*[lambda: wait_until(lambda: recovery.rebuild(QUEUE))] * 2)
    assert row(lost).losses == 1
    drain()
    assert labels(journal) == [str(n) for n in range(50)]
    assert (row(lost).losses, row(lost).attempts) == (1, 2)


def test_one_process_publishes_in_a_rebuild_and_another_does_when_it_has_died(
    short_ttl: None, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.note.enqueue_many([{"label": str(n)} for n in range(5)])
    others: list[bool] = []
    read = ledger.live_page

    def page(*args: Any, **kwargs: Any) -> list[JobRun]:
        if not others:
            others.append(True)
            others[0] = recovery.rebuild(QUEUE)
        return read(*args, **kwargs)

    monkeypatch.setattr(ledger, "live_page", page)
    store.client.flushall()
    wait_until(lambda: recovery.rebuild(QUEUE))
    assert others == [False]
    store.client.flushall()
    assert store.turn("rebuild", 1.5), "this one dies now"
    wait_until(lambda: recovery.rebuild(QUEUE))


def test_runs_of_a_queue_that_the_settings_name_no_more_are_found_and_can_be_cancelled(
    short_ttl: None, store: Store
) -> None:
    [run] = new()
    change(run, queue="former")
    assert "former" in recovery.recover(Scope(patience=10)).queues
    assert store_for("former").snapshot([(run.pk, "g")]).entries
    assert control.cancel([run.pk]).changed == [run.pk]
    assert not store_for("former").snapshot([(run.pk, "g")]).entries


def test_a_rebuild_takes_many_for_lost_in_few_queries(short_ttl: None, store: Store) -> None:
    alone = [running(40, alone=True, group=f"a{n}") for n in range(30)]
    batch = [running(40, group=f"b{n}") for n in range(30)]
    poison = running(40, alone=True, group="p", max_losses=1, losses=1)
    unwanted = running(40, alone=True, group="u", cancel_requested_at=Now())
    store.client.flushall()
    ledger.mark_opened(QUEUE)
    wait_until(lambda: store.tick("another", 0).rebuilding_ms > 600)
    with CaptureQueriesContext(connection) as queries:
        assert recovery.rebuild(QUEUE)
    assert len(queries) < 60
    assert statuses([poison, unwanted]) == ["ABANDONED", "CANCELLED"]
    assert {(row(run).status, row(run).alone, row(run).losses) for run in alone} == {("READY", True, 1)}
    assert {(row(run).status, row(run).alone, row(run).losses) for run in batch} == {("READY", True, 0)}
    assert attempts(alone[0]) == attempts(batch[0]) == [(40, "lost")]
    assert {entry.alone for entry in store.snapshot([(run.pk, run.group) for run in alone]).entries.values()} == {1}


def test_a_large_table_is_gone_through_by_several_sweeps(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is bounded in time, and begins where the last one ended."""
    monkeypatch.setattr(routine, "PAGE", 3)
    for name in ("SHARE", "SHORTEST"):
        monkeypatch.setattr(sys.modules["groupjobs.recovery.sweep"], name, 0.0)
    runs = [new(group=f"g{n}")[0] for n in range(8)]
    seen = []
    for _ in range(4):
        store.client.delete(f"{store.base}:turn:full")
        assert recovery.sweep(QUEUE) is not None
        seen.append(len(known(store, runs)))
    assert seen == [3, 6, 8, 8]
    assert store.swept_to() == runs[2].pk, "the last one has begun again"


def test_a_recovery_says_where_to_go_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routine, "PAGE", 3)
    runs = [new(group=f"g{n}")[0] for n in range(5)]
    report = recovery.recover(Scope(queue=QUEUE, seconds=0.0))
    assert (report.go_on, report.counts["republished"]) == (runs[2].pk, 3)
    report = recovery.recover(Scope(queue=QUEUE, after=report.go_on, seconds=0.0))
    assert (report.go_on, report.counts["republished"]) == (0, 2)
    assert set(report.as_dict()) == {*COUNTS, "dry_run", "queues", "details"}
