"""Waiting for results, asynchronous enqueues, chains, and names that have changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync

import groupjobs
from groupjobs import registry
from groupjobs.compat import TaskResultStatus
from groupjobs.ledger import Batch, insert
from groupjobs.models import JobRun
from groupjobs.moves import publish
from groupjobs.store import Store
from tests.core.serving import drain, pk_of, serving, statuses
from tests.jobsapp.jobs import fails, note, waits
from tests.semantics.jobs import chains, renamed
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.api

Said = Callable[[], list[list[Any]]]


def test_wait_returns_when_the_run_has_ended(store: Store, journal: Said) -> None:
    good, bad = note.enqueue("a"), fails.enqueue("b")
    with serving():
        assert groupjobs.wait(good, 15).return_value == "a"
        assert groupjobs.wait(bad, 15).status == TaskResultStatus.FAILED


@pytest.mark.parametrize("timeout", ["5", float("nan"), [1]])
def test_wait_refuses_what_is_no_timeout(timeout: Any, store: Store) -> None:
    with pytest.raises(ValueError, match="timeout must be seconds"):
        groupjobs.wait(note.enqueue("a"), timeout)


def test_wait_says_how_far_it_came(store: Store, journal: Said, gate: Path) -> None:
    result = waits.enqueue("a", str(gate))
    with serving():
        wait_until(journal)
        with pytest.raises(TimeoutError, match=f"Run {result.id} has not ended after 0.05 s: its status is RUNNING"):
            groupjobs.wait(result, 0.05)
        gate.touch()
        groupjobs.wait(result, 15)


def test_aenqueue_and_aenqueue_many(store: Store, journal: Said) -> None:
    async def view() -> list[Any]:
        first = await note.aenqueue("a")
        return [first, *await note.aenqueue_many([{"label": label} for label in "bcd"])]

    results = async_to_sync(view)()
    drain()
    assert journal() == [["a"], ["b"], ["c"], ["d"]]
    assert statuses(results) == ["SUCCEEDED"] * 4


def test_aenqueue_many_is_all_or_nothing(store: Store) -> None:
    with pytest.raises(groupjobs.Refused, match="group"):
        async_to_sync(note.aenqueue_many)([{"label": "a"}, {"label": "b", "group": ""}])
    assert not JobRun.objects.exists()


def test_a_chain_queues_up_behind_what_waits(store: Store, journal: Said) -> None:
    chains.enqueue("a1", ["a2", "a3"])
    chains.enqueue("b1", ["b2"])
    chains.enqueue("c1", [])
    drain()
    assert [label for (label,) in journal()] == ["a1", "b1", "c1", "a2", "b2", "a3"]


# --- renames


@pytest.mark.parametrize("old", ["tests.semantics.renamed", "tests.old_name", "tests.semantics.jobs.moved_away"])
def test_a_waiting_row_of_an_old_name_runs(store: Store, journal: Said, old: str) -> None:
    [run] = insert(Batch("default", old, [("g", '["a"]', "{}", None)]))
    publish([run])
    drain()
    run.refresh_from_db()
    assert (run.status, run.result, journal()) == ("SUCCEEDED", "a", [["renamed", "a"]])


def test_new_rows_carry_the_name(store: Store) -> None:
    assert JobRun.objects.get(pk=renamed.enqueue("a").id).job == "tests.semantics.renamed"


def test_a_name_that_nobody_has_waits_for_a_worker_that_has_it(store: Store, journal: Said) -> None:
    [run] = insert(Batch("default", "tests.of_the_next_release", [("g", '["a"]', "{}", None)]))
    publish([run])
    drain(lambda: True)
    assert statuses([run]) == ["READY"]
    assert registry.resolve("tests.of_the_next_release") is None
    assert JobRun.objects.get(pk=run.pk).losses == 0


def test_a_result_of_an_old_name_is_found(store: Store) -> None:
    [run] = insert(Batch("default", "tests.old_name", [("g", '["a"]', "{}", None)]))
    found = renamed.get_backend().get_result(str(run.pk))
    assert (pk_of(run), found.task.func) == (run.pk, renamed.func)
