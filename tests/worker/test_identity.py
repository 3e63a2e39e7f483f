"""Under which incarnation a worker's processes serve."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from groupjobs.watchdog.home import Home
from groupjobs.worker import identity

WORKER = "here:1:abc"


@pytest.fixture
def home() -> Iterator[Home]:
    made = Home.make()
    identity.settle(made, WORKER)
    yield made
    identity.depart()
    made.remove()


def test_a_bell_that_comes_before_the_watchdog_knows_its_queue_is_served_under_the_worker_s_own_name(
    home: Home,
) -> None:
    """Under a name of the child's own nobody would beat for it: a run longer than the TTL would be robbed."""
    assert home.worker_of("default") is None
    assert identity.current("default") == WORKER
    identity._home, identity._first = None, ""  # as in a process that was not forked
    assert identity.adopt() is not None
    assert identity.current("default") == WORKER


def test_a_new_incarnation_takes_the_place_of_one_that_was_judged_dead(home: Home) -> None:
    home.serve("default", "here:1:new")
    assert identity.current("default") == "here:1:new"


def test_outside_of_a_worker_each_process_has_a_name_of_its_own() -> None:
    assert identity.current("default").split(":")[1] == str(os.getpid())
