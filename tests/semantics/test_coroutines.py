"""Handlers that are coroutine functions: interrupts, transactions, cancels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groupjobs import control
from groupjobs.models import JobGroup, JobRun
from groupjobs.store import Store
from tests.core.rows import again
from tests.core.serving import drain, pk_of, serving, statuses
from tests.jobsapp.models import Written
from tests.semantics.jobs import ends_as_asked, listens_later, writes_later
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.api

Said = Callable[[], list[list[Any]]]


@pytest.mark.parametrize(
    ("what", "status", "attempts"),
    [("retry", "SUCCEEDED", 2), ("cancel", "CANCELLED", 1), ("hold", "READY", 0), ("", "SUCCEEDED", 1)],
)
def test_interrupts_of_a_coroutine(store: Store, what: str, status: str, attempts: int) -> None:
    result = ends_as_asked.enqueue(what)
    drain(lambda: statuses([result]) == [status] and (what != "hold" or JobGroup.objects.filter(held=True).exists()))
    run = again(pk_of(result))
    assert (run.status, run.attempts, run.losses) == (status, attempts, 0)


def test_an_atomic_coroutine_writes_in_the_transaction_of_its_run(store: Store, journal: Said) -> None:
    """Also what it enqueues: its queries run on the connection that the transaction is on."""
    good, bad = writes_later.enqueue("a"), writes_later.enqueue("b", fails=True)
    drain()
    assert statuses([good, bad]) == ["SUCCEEDED", "FAILED"]
    run = again(pk_of(good))
    assert list(Written.objects.values_list("label", "run", "fence")) == [("a", run.pk, run.fence)]
    assert journal() == [["after a"]]
    assert JobRun.objects.count() == 3


def test_a_coroutine_hears_that_it_is_to_end(store: Store, journal: Said, gate: Path) -> None:
    result = listens_later.enqueue(str(gate))
    with serving():
        wait_until(journal)
        assert control.cancel([pk_of(result)]).changed
        wait_until(lambda: statuses([result]) == ["CANCELLED"])
