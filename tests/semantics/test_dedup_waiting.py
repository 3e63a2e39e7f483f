"""Duplicates of a run that waits: its arguments are replaced, or it is shared by all who ask for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from groupjobs import control
from groupjobs.store import Store
from tests.core.rows import aside
from tests.core.serving import drain, serving, statuses
from tests.semantics.jobs import coalesced, newest, once
from tests.semantics.seen import begins, row
from tests.servers.waiting import wait_until

several_writers = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")

Said = Callable[[], list[list[Any]]]


# --- replace


def test_replace_puts_new_arguments_into_the_waiting_twin(store: Store, journal: Said) -> None:
    first = newest.enqueue("k", label="a")
    second = newest.enqueue("k", label="b")
    assert (second.id, second.kwargs) == (first.id, {"label": "b"})
    results = newest.enqueue_many([{"key": "k", "label": label} for label in "cde"])
    assert {result.id for result in results} == {first.id}
    drain()
    assert begins(journal) == ["e"]


def test_replace_does_not_touch_a_run_that_has_begun(store: Store, journal: Said, gate: Path) -> None:
    first = newest.enqueue("k", label="a", gate=str(gate))
    with serving():
        wait_until(lambda: begins(journal))
        second = newest.enqueue("k", label="b")
        assert (second.id, second.kwargs["label"]) == (first.id, "a")
        gate.touch()
        wait_until(lambda: row(first).status == "SUCCEEDED")
    assert row(first).result == "a"


def test_replace_is_seen_although_the_row_was_loaded_before(
    store: Store, journal: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between load and begin the arguments change: what was loaded is not what may begin."""
    from groupjobs import ledger

    first = newest.enqueue("k", label="a")
    load = ledger.load

    def loaded(queue: str, runs: Any) -> Any:
        rows = load(queue, runs)
        if runs and row(first).kwargs["label"] == "a":
            aside(lambda: newest.enqueue("k", label="b"))
        return rows

    monkeypatch.setattr(ledger, "load", loaded)
    drain()
    assert begins(journal) == ["b"]
    assert row(first).result == "b"


@several_writers
def test_a_consumer_waits_for_nobody_who_replaces(store: Store, journal: Said) -> None:
    """The twin's row is locked until its caller commits; other groups are served meanwhile."""
    control.hold("default", "k")
    first = newest.enqueue("k", label="a")
    with serving():
        with transaction.atomic():
            newest.enqueue("k", label="b")
            aside(lambda: control.resume("default", "k"))
            other = aside(lambda: once.enqueue("x", label="x"))
            wait_until(lambda: aside(lambda: row(other).status) == "SUCCEEDED")
            assert aside(lambda: row(first).status) == "READY"
        wait_until(lambda: statuses([first]) == ["SUCCEEDED"])
    assert sorted(begins(journal)) == ["b", "x"]


# --- coalesce


def test_coalesce_has_one_that_runs_and_one_that_waits(store: Store, journal: Said, gate: Path) -> None:
    first = coalesced.enqueue("k", label="a", gate=str(gate))
    with serving(), serving():
        wait_until(lambda: begins(journal))
        second = coalesced.enqueue("k", label="b")
        third = coalesced.enqueue("k", label="c")
        assert second.id != first.id
        assert third.id == second.id
        assert statuses([first, second]) == ["RUNNING", "READY"]
        gate.touch()
        wait_until(lambda: statuses([first, second]) == ["SUCCEEDED"] * 2)
    assert journal() == [["begins", "a"], ["ends", "a"], ["begins", "b"], ["ends", "b"]]
    assert row(second).result == "b"


@several_writers
def test_a_coalesced_run_does_not_begin_before_its_caller_has_committed(store: Store, journal: Said) -> None:
    first = coalesced.enqueue("k", label="a")
    with transaction.atomic():
        assert coalesced.enqueue("k", label="b").id == first.id
        with serving():
            other = aside(lambda: once.enqueue("x", label="x"))
            wait_until(lambda: aside(lambda: row(other).status) == "SUCCEEDED")
            third = aside(lambda: coalesced.enqueue("k", label="c"))
            assert third.id == first.id, "it shares the lock and waits for nobody"
            assert aside(lambda: row(first).status) == "READY"
    drain()
    assert begins(journal).count("a") == 1


def test_a_coalescing_run_keeps_its_own_group(store: Store) -> None:
    assert row(coalesced.enqueue("k")).group.endswith(".coalesced k")
    assert row(coalesced.using(group="mine").enqueue("k2")).group == "mine"
    assert len(row(coalesced.enqueue("k" * 255)).group) == 255
