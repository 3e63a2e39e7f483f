from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupjobs import scheduling
from groupjobs.errors import Refused, UnknownJob
from groupjobs.models import JobRun
from groupjobs.store import Store
from project.celery import app
from tests.conftest import StartWorker
from tests.core.rows import race
from tests.core.serving import drain
from tests.servers.waiting import wait_until

Said = Callable[[], list[list[Any]]]

NOTE = "tests.jobsapp.jobs.note"
ONCE = "tests.semantics.jobs.once"


def test_it_enqueues_by_name_with_arguments_and_group(store: Store, journal: Said) -> None:
    run = scheduling.enqueue(NOTE, ["a"], group="mine")
    row = JobRun.objects.get(pk=run)
    assert (row.job, row.args, row.kwargs, row.group) == (NOTE, ["a"], {}, "mine")
    other = scheduling.enqueue(NOTE, kwargs={"label": "b", "group": "t"})
    assert JobRun.objects.get(pk=other).group == "t"
    drain()
    assert journal() == [["a"], ["b"]]


def test_a_tick_that_fires_twice_makes_one_run(store: Store) -> None:
    first = scheduling.enqueue(NOTE, ["a"])
    assert scheduling.enqueue(NOTE, ["a"]) == first
    assert scheduling.enqueue(NOTE, ["b"]) != first
    drain()
    assert scheduling.enqueue(NOTE, ["a"]) != first, "the next tick"


def test_a_late_double_of_a_tick_makes_no_run_either(store: Store) -> None:
    first = scheduling.enqueue(NOTE, ["a"], once_in=50)
    drain()
    assert scheduling.enqueue(NOTE, ["a"], once_in=50) == first
    assert JobRun.objects.count() == 1
    assert scheduling.enqueue(NOTE, ["a"], once_in=0.001) != first


def test_two_beats_at_once(store: Store) -> None:
    for tick in range(5):
        runs = race(*[lambda n=tick: scheduling.enqueue(NOTE, [str(n)], once_in=50)] * 3)
        assert len(set(runs)) == 1
    assert JobRun.objects.count() == 5


def test_a_key_of_the_entry_and_a_key_of_the_job(store: Store) -> None:
    first = scheduling.enqueue(NOTE, ["a"], dedup="nightly")
    assert scheduling.enqueue(NOTE, ["b"], dedup="nightly") == first
    own = scheduling.enqueue(ONCE, ["k"])
    assert JobRun.objects.get(pk=own).dedup_key == "k"
    assert scheduling.enqueue(ONCE, ["k"], {"label": "other"}) == own


def test_errors_say_what_is_wrong(store: Store) -> None:
    with pytest.raises(UnknownJob, match=r"no job 'tests.jobsapp.jobs.nothing'. did you mean 'tests"):
        scheduling.enqueue("tests.jobsapp.jobs.nothing")
    with pytest.raises(Refused, match="label"):
        scheduling.enqueue(NOTE)
    assert not JobRun.objects.exists()


@pytest.mark.celery
def test_the_task_of_a_beat_entry(start_worker: StartWorker, journal: Said) -> None:
    start_worker()
    for _ in range(2):
        app.send_task("groupjobs.enqueue", [NOTE], {"kwargs": {"label": "tick"}, "group": "g", "once_in": 50})
    wait_until(lambda: JobRun.objects.filter(status="SUCCEEDED").exists(), 30)
    app.send_task("groupjobs.enqueue", [NOTE], {"kwargs": {"label": "tick"}, "group": "g", "once_in": 50})
    app.send_task("groupjobs.enqueue", [NOTE], {"kwargs": {"label": "end"}})
    wait_until(lambda: ["end"] in journal(), 30)
    assert journal().count(["tick"]) == 1
