"""What a consumer meets that should not be: a clear error or a settled run with its reason; nothing is stuck."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from django.test import override_settings
from django.utils import translation

from groupjobs import control, ledger, registry
from groupjobs.models import JobGroup, JobRun
from groupjobs.store import Publication, Store
from tests.core.ghosts import row
from tests.core.rows import QUEUE, attempts, change, values
from tests.core.serving import drain, ended, known, pk_of, serve, statuses, traces
from tests.core.told import labels
from tests.jobsapp import jobs
from tests.jobsapp.models import Written
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

Journal = Callable[[], list[list[Any]]]
Batches = Callable[[], None]
GONE = "tests.jobsapp.jobs.no_longer_there"
HOUR = timedelta(hours=1)


def counted(run: Any) -> tuple[int, int, int]:
    found = row(run)
    return found.attempts, found.failures, found.losses


# --- unknown jobs, and arguments that do not fit


def test_an_unknown_job_is_given_back_and_abandoned_after_the_grace(store: Store, journal: Journal) -> None:
    run = jobs.note.enqueue(label="A")
    change(row(run), job=GONE)
    behind = jobs.note.enqueue(label="B")
    serve()
    serve()
    assert statuses([run, behind]) == ["READY", "READY"]
    assert counted(run) == (0, 0, 0)
    state = store.snapshot([(pk_of(run), "g")]).groups["g"]
    assert not state.ready
    assert state.later_ms, "nothing spins: the group waits"
    change(row(run), enqueued_at=Now() - HOUR)
    drain()
    assert (row(run).status, row(run).reason) == ("ABANDONED", "unknown_job")
    assert counted(run) == (0, 0, 0)
    assert labels(journal) == ["B"]
    assert traces(store) == []


def test_a_rolling_deploy_destroys_nothing(store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old workers do not know the job that a new web process enqueued; the new ones do."""
    run = jobs.note.enqueue(label="A")
    other = jobs.noop.using(group="x").enqueue()
    known_jobs = registry.resolve
    with monkeypatch.context() as patch:
        patch.setattr(registry, "resolve", lambda name: None if name == jobs.note.job_name else known_jobs(name))
        drain(lambda: ended([other]))
        serve()
    assert statuses([run]) == ["READY"]
    assert counted(run) == (0, 0, 0)
    drain()
    assert labels(journal) == ["A"]
    assert counted(run) == (1, 0, 0)


BAD_CALLS: dict[str, tuple[Any, Any]] = {
    "a name that is none": ([], {"lable": "A"}),
    "too many": (["A", "g", "more"], {}),
    "too few": ([], {}),
    "twice": (["A"], {"label": "A"}),
    "arguments that are no list": ("A", {}),
    "arguments that are a dict": ({"label": "A"}, {}),
    "no arguments at all": (None, {"label": "A"}),
    "named arguments that are a list": ([], ["label"]),
    "named arguments that are a number": ([], 5),
    "no named arguments at all": (["A"], None),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_j1_arguments_that_do_not_bind(name: str, store: Store, journal: Journal) -> None:
    args, kwargs = BAD_CALLS[name]
    run = jobs.note.enqueue(label="A")
    behind = jobs.note.enqueue(label="B")
    with connection.cursor() as cursor:
        cursor.execute(
            "update groupjobs_jobrun set args = %s, kwargs = %s where id = %s",
            [json.dumps(args), json.dumps(kwargs), pk_of(run)],
        )
    if name == "a name that is none":
        serve()
        assert statuses([run, behind]) == ["READY", "READY"], "first it is given back"
        assert counted(run) == (0, 0, 0)
    change(row(run), enqueued_at=Now() - HOUR)
    drain()
    assert (row(run).status, row(run).reason) == ("ABANDONED", "bad_arguments")
    assert counted(run) == (0, 0, 0)
    assert labels(journal) == ["B"]


def test_a_type_error_of_the_handler_itself_is_a_failure(store: Store) -> None:
    run = jobs.picky.enqueue(label="A", error="none of them")
    drain()
    assert row(run).status == "FAILED"
    assert (row(run).error or {})["class"] == "builtins.KeyError"


def test_c4_an_abandoned_run_does_as_its_after_failure_says(store: Store, journal: Journal) -> None:
    cases: list[tuple[str, Any]] = [("a", "continue"), ("b", "hold"), ("c", "cancel")]
    for group, after_failure in cases:
        run = jobs.note.using(after_failure=after_failure).enqueue(label=f"{group}1", group=group)
        change(row(run), job=GONE, enqueued_at=Now() - HOUR)
        jobs.note.enqueue(label=f"{group}2", group=group)
    drain(lambda: JobRun.objects.filter(status="ABANDONED").count() == 3)
    serve()
    assert labels(journal) == ["a2"]
    assert dict(JobRun.objects.values_list("group", "status").filter(kwargs__label__endswith="2")) == {
        "a": "SUCCEEDED",
        "b": "READY",
        "c": "CANCELLED",
    }
    assert ledger.group_row(QUEUE, "b").held  # type: ignore[union-attr]


# --- rows that are not what Redis thinks


def test_a_row_that_was_deleted_before_it_ran(store: Store, journal: Journal) -> None:
    runs = jobs.note.enqueue_many([{"label": label} for label in "ABC"])
    JobRun.objects.filter(pk=pk_of(runs[1])).delete()
    drain()
    assert labels(journal) == ["A", "C"]
    assert traces(store) == []


def test_a_row_that_is_deleted_while_it_runs(store: Store, journal: Journal, batches: Batches) -> None:
    batches()
    jobs.deletes_itself.using(group="g").enqueue(label="A")
    jobs.note.enqueue(label="B")
    drain()
    assert labels(journal) == ["A", "B"]
    assert traces(store) == []


def test_an_entry_of_another_group_or_of_no_row_is_dropped(store: Store, journal: Journal) -> None:
    run = jobs.note.enqueue(label="A")
    store.enqueue([Publication(pk_of(run) + 1000, "g"), Publication(pk_of(run) + 1001, "x")])
    change(row(run), group="moved")
    drain(lambda: not traces(store))
    assert statuses([run]) == ["READY"]
    assert journal() == []


def test_an_entry_of_another_queue_s_run_is_dropped(store: Store, journal: Journal) -> None:
    run = jobs.note.enqueue(label="A")
    change(row(run), queue="other")
    before = values(row(run))
    serve()
    assert traces(store) == []
    assert values(row(run)) == before


def test_a_terminal_row_is_never_served_again(store: Store, journal: Journal) -> None:
    run = jobs.note.enqueue(label="A")
    drain()
    before = values(row(run))
    store.enqueue([Publication(pk_of(run), "g"), Publication(pk_of(run), "g", life=2, fence=10**15)])
    drain(lambda: not traces(store))
    assert values(row(run)) == before
    assert labels(journal) == ["A"]


def test_c2_a_run_before_its_time_is_given_back_until_then(store: Store, journal: Journal) -> None:
    """Its row was rescheduled, and Redis was not told."""
    run = jobs.note.enqueue(label="A")
    change(row(run), run_after=Now() + timedelta(seconds=1.5))
    serve()
    assert counted(run) == (0, 0, 0)
    later = store.snapshot([(pk_of(run), "g")]).groups["g"].later_ms
    assert later is not None
    assert 500 < later <= 1500
    drain()
    assert labels(journal) == ["A"]


# --- holds that Redis missed


def test_c2_a_hold_that_redis_missed_is_restored_and_not_overrun(store: Store, journal: Journal) -> None:
    runs = jobs.note.enqueue_many([{"label": label} for label in "AB"])
    JobGroup.objects.create(queue=QUEUE, group="g", held=True, version=7)
    serve()
    serve()
    assert journal() == []
    assert statuses(runs) == ["READY", "READY"]
    state = store.snapshot([(pk_of(runs[0]), "g")]).groups["g"]
    assert (state.held_flag, state.version, state.ready, state.held) == (True, 7, False, ())


def test_a_pause_of_the_queue_that_redis_missed_is_restored_and_not_overrun(store: Store, journal: Journal) -> None:
    runs = [*jobs.note.enqueue_many([{"label": label} for label in "AB"]), jobs.noop.enqueue()]
    JobGroup.objects.update_or_create(queue=QUEUE, group="", defaults={"held": True, "version": 7})
    serve()
    serve()
    assert journal() == []
    assert statuses(runs) == ["READY"] * 3
    assert store.overview().paused


# --- what handlers return and raise


@pytest.mark.parametrize("kind", jobs.BAD_RESULTS)
def test_j1b_a_result_that_is_no_json_fails_its_own_run_only(
    kind: str, store: Store, journal: Journal, batches: Batches
) -> None:
    batches()
    before = jobs.echo.enqueue("before")
    run = jobs.answers_badly.enqueue(kind=kind)
    after = jobs.echo.enqueue("after")
    drain()
    assert statuses([before, run, after]) == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert [row(mate).result for mate in (before, after)] == ["before", "after"]
    found = row(run)
    assert found.result is None
    assert isinstance(found.error, dict)
    assert "return value" in found.error["message"]
    assert labels(journal).count("bad") == 1


@pytest.mark.parametrize("kind", ["nul", "surrogate", "long", "raises"])
def test_j1b_an_exception_with_an_evil_text_fails_its_own_run_only(
    kind: str, store: Store, journal: Journal, batches: Batches
) -> None:
    batches()
    before = jobs.echo.enqueue("before")
    run = jobs.raises_evil.enqueue(kind=kind)
    after = jobs.echo.enqueue("after")
    drain()
    assert statuses([before, run, after]) == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert labels(journal).count("evil") == 2
    found = row(run)
    assert isinstance(found.error, dict)
    assert found.error["class"] == "tests.jobsapp.jobs.Evil"
    assert "\0" not in found.error["message"]
    json.dumps(found.error, ensure_ascii=False).encode()
    assert len(json.dumps(found.error)) < 500_000
    assert [outcome for _, outcome in attempts(found)] == ["failed", "failed"]


@pytest.mark.parametrize("kind", jobs.BURSTS)
def test_a_handler_that_ends_by_no_exception_has_failed_and_blocks_nobody(
    kind: str, store: Store, journal: Journal, batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)  # as in a child of a pool
    batches()
    run = jobs.bursts.using(group="g").enqueue(label="A", kind=kind)
    behind = jobs.note.enqueue(label="B")
    drain()
    assert statuses([run, behind]) == ["FAILED", "SUCCEEDED"]
    assert counted(run) == (1, 1, 0)
    found = row(run)
    assert isinstance(found.error, dict)
    assert found.error["class"].endswith(type(jobs.BURSTS[kind]).__qualname__)
    assert labels(journal) == ["A", "B"]


def test_ctrl_c_ends_the_consumer_and_not_the_run(store: Store, journal: Journal) -> None:
    run = jobs.bursts.using(max_losses=3).enqueue(label="A", kind="keyboard")
    with pytest.raises(KeyboardInterrupt):
        serve()
    assert statuses([run]) != ["FAILED"]


@pytest.mark.parametrize("how", ["returns", "raises"])
def test_a_copy_of_the_process_that_a_handler_leaves_ends_there(how: str, store: Store, journal: Journal) -> None:
    run = jobs.forks.enqueue(label="A", how=how)
    behind = jobs.note.using(group="f").enqueue(label="B")
    drain()
    assert statuses([run, behind]) == ["SUCCEEDED", "SUCCEEDED"]
    assert row(run).result == "parent"
    assert labels(journal) == ["A", "B"]


# --- what handlers leave behind


@pytest.mark.parametrize("how", ["autocommit", "atomic"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_transaction_that_a_handler_leaves_open_is_a_failure_and_rolled_back(
    how: str, fails: bool, store: Store, journal: Journal, batches: Batches
) -> None:
    batches()
    before = jobs.echo.enqueue("before")
    run = jobs.leaves_open.enqueue(label="A", how=how, fails=fails)
    after = [jobs.tells_transaction.enqueue(label="B"), jobs.echo.enqueue("after")]
    drain()
    assert statuses([before, run, *after]) == ["SUCCEEDED", "FAILED", "SUCCEEDED", "SUCCEEDED"]
    assert row(after[0]).result == [False, True]
    assert not Written.objects.exists()
    assert not connection.in_atomic_block
    assert connection.get_autocommit()
    assert labels(journal).count("A") == 1


BEGINS = {"postgresql": "begin", "sqlite": "begin"}
SESSIONS = {
    "postgresql": ["set search_path = pg_catalog", "set default_transaction_read_only = on"],
    "sqlite": ["pragma query_only = on"],
    "mysql": ["set session transaction read only", "use information_schema"],
}


@pytest.mark.skipif(connection.vendor not in BEGINS, reason="MariaDB's driver does not tell")
def test_a_transaction_begun_in_sql_is_a_failure_too(store: Store, journal: Journal) -> None:
    run = jobs.says_in_sql.enqueue(label="A", statement=BEGINS[connection.vendor])
    drain()
    assert statuses([run]) == ["FAILED"]
    assert counted(run) == (1, 1, 0)
    assert labels(journal) == ["A"]


@pytest.mark.parametrize("statement", SESSIONS[connection.vendor])
def test_what_a_handler_sets_on_its_session_costs_no_outcome(statement: str, store: Store, journal: Journal) -> None:
    run = jobs.says_in_sql.enqueue(label="A", statement=statement)
    drain()
    assert statuses([run]) == ["SUCCEEDED"]
    assert counted(run) == (1, 0, 0)
    assert labels(journal) == ["A"]


def test_an_atomic_handler_that_deletes_its_own_row_has_failed(store: Store, journal: Journal) -> None:
    run = jobs.deletes_itself.using(atomic=True).enqueue(label="A")
    drain()
    assert statuses([run]) == ["FAILED"]
    assert counted(run) == (1, 1, 0)
    assert labels(journal) == ["A"]


def test_a_handler_may_close_its_connections(store: Store, journal: Journal, batches: Batches) -> None:
    batches()
    runs = [jobs.closes_connections.enqueue(label="A"), jobs.note.enqueue(label="B")]
    drain()
    assert statuses(runs) == ["SUCCEEDED", "SUCCEEDED"]


def test_language_and_time_zone_are_each_run_s_own(store: Store, batches: Batches) -> None:
    batches()
    jobs.speaks_danish.enqueue(label="A")
    run = jobs.tells_language.enqueue(label="B")
    with translation.override("fr"):
        drain()
        assert translation.get_language() == "fr"
    assert row(run).result == ["en", "UTC"]


# --- what must be alone is alone


@pytest.mark.parametrize("option", [{"max_losses": 0}, {"time_limit": 60}])
def test_a_run_that_must_be_alone_is_a_batch_of_one(option: Any, store: Store, batches: Batches) -> None:
    batches()
    around = jobs.echo.enqueue_many([{"value": number} for number in range(10)])
    runs = [jobs.tells_company.using(group=f"t{n}", **option).enqueue(label="A") for n in range(3)]
    around += jobs.echo.enqueue_many([{"value": number} for number in range(10)])
    drain()
    assert [row(run).result for run in runs] == [[True, 1]] * 3
    assert set(statuses(around)) == {"SUCCEEDED"}


def test_a_suspect_is_reserved_alone_even_when_redis_forgot_the_hint(store: Store, batches: Batches) -> None:
    batches()
    runs = [jobs.tells_company.using(group=f"t{n}").enqueue(label="A") for n in range(3)]
    change(row(runs[1]), alone=True)
    drain()
    assert row(runs[1]).result == [True, 1]
    assert counted(runs[1]) == (1, 0, 0)


def test_the_grace_is_a_setting(store: Store, journal: Journal) -> None:
    run = jobs.note.enqueue(label="A")
    change(row(run), job=GONE)
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "UNKNOWN_JOB_GRACE": 0}):
        serve()
    assert (row(run).status, row(run).reason) == ("ABANDONED", "unknown_job")
    assert known(store, [run]) == set()


# --- nothing spins


def steps_of(store: Store, monkeypatch: pytest.MonkeyPatch, seconds: float) -> int:
    """How many steps consumers make in so many seconds, which have nothing that they may run."""
    calls: list[str] = []
    real = Store.call

    def call(self: Store, verb: str, *args: Any) -> Any:
        calls.append(verb)
        return real(self, verb, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "call", call)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            serve(stop=lambda: time.monotonic() > until)
            wait_until(lambda: time.monotonic() > until or store.tick("", 0).ready)
    return calls.count("step")


def test_a_run_that_is_due_by_the_database_s_clock_and_not_by_redis_s(
    store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clocks are a minute apart: what is behind it waits, and is not reserved all the time."""
    first = jobs.note.using(run_after=datetime.now(UTC) + timedelta(seconds=60)).enqueue(label="A")
    change(row(first), run_after=Now() - timedelta(seconds=1))
    second = jobs.note.enqueue(label="B")
    assert steps_of(store, monkeypatch, 1.0) < 30
    assert statuses([first, second]) == ["READY", "READY"]
    assert counted(second) == (0, 0, 0)
    store.withdraw([(pk_of(first), "g", 1)])
    drain()
    assert labels(journal) == ["A", "B"]


def test_a_hold_that_redis_takes_for_an_old_one(
    store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of the group was deleted and made anew, so its version is lower than the one that Redis knows."""
    for _ in range(3):
        control.hold(QUEUE, "g")
        control.resume(QUEUE, "g")
    JobGroup.objects.filter(group="g").delete()
    control.hold(QUEUE, "g", "look")
    run = jobs.note.enqueue(label="A")
    assert steps_of(store, monkeypatch, 1.0) < 30
    assert statuses([run]) == ["READY"]
    control.resume(QUEUE, "g")
    drain()
    assert labels(journal) == ["A"]
