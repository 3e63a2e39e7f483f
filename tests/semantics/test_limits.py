"""How many at once and how often: per queue, per group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from groupjobs import control, recovery
from groupjobs.models import JobGroup
from groupjobs.store import Store, store_for
from groupjobs.store.connect import stand_in
from project.embedded import EmbeddedValkey
from tests.conftest import StartWorker
from tests.core.rows import QUEUE
from tests.core.serving import drain, serve, serving, statuses
from tests.jobsapp.jobs import note, waits
from tests.servers.waiting import wait_until
from tests.store.travel import Timed

Said = Callable[[], list[list[Any]]]


@pytest.fixture
def slow(transactional_db: None, valkey: EmbeddedValkey) -> Iterator[Timed]:
    """The real scripts, two runs of a group a minute; the test sets TIME."""
    with valkey.client() as client:
        made = Timed(client, ttl=5, rate=(2, 60.0))
        made.open(made.tick("", 0).epoch)
        stand_in(lambda queue: made)
        yield made
        stand_in(None)


def most_at_once(said: list[list[Any]]) -> int:
    now, most = 0, 0
    for _, word in said:
        now += 1 if word == "begins" else -1
        most = max(most, now)
    return most


def test_a_rate_lets_so_many_runs_of_a_group_begin(slow: Timed, journal: Said) -> None:
    note.enqueue_many([{"label": f"g{n}"} for n in range(5)])
    note.enqueue_many([{"label": f"h{n}", "group": "h"} for n in range(1)])
    serve()
    serve()
    assert sorted(label for (label,) in journal()) == ["g0", "g1", "h0"]
    assert slow.overview().ready == 0, "no consumer sees a group without a token"
    slow.pass_time(29)
    serve()
    assert len(journal()) == 3
    slow.pass_time(2)
    serve()
    assert journal()[3:] == [["g2"]]
    slow.pass_time(300)
    serve()
    serve()
    assert journal()[4:] == [["g3"], ["g4"]], "tokens do not pile up"


def test_a_group_s_own_rate(slow: Timed, journal: Said) -> None:
    assert control.limit_group(QUEUE, "g", rate=(4, 60)).changed
    assert control.limit_group(QUEUE, "h", rate=(1, 60)).changed
    note.enqueue_many([{"label": f"{group}{n}", "group": group} for n in range(6) for group in "ghi"])
    for _ in range(6):
        serve()
    assert sorted(label for (label,) in journal()) == ["g0", "g1", "g2", "g3", "h0", "i0", "i1"]
    assert control.limit_group(QUEUE, "h").changed, "the queue's rate again"
    assert JobGroup.objects.get(group="h").version == 2
    assert not slow.hold("h", 1, False, None, (1, 60.0)), "what was said earlier and comes later changes nothing"
    slow.pass_time(31)
    serve()
    assert ["h1"] in journal()


def test_a_group_s_own_concurrency(store: Store, journal: Said, gate: Path) -> None:
    assert control.limit_group(QUEUE, "g", concurrency=2, by="Ada").changed
    assert JobGroup.objects.get(group="g").by == "Ada"
    runs = waits.enqueue_many(
        [{"label": f"{group}{n}", "gate": str(gate), "group": group} for group in "gh" for n in range(3)]
    )
    with serving(), serving(), serving(), serving():
        wait_until(lambda: len(journal()) == 3, what="two of g and one of h")
        serve()
        assert sorted(statuses(runs[:3])) == ["READY", "RUNNING", "RUNNING"]
        assert sorted(statuses(runs[3:])) == ["READY", "READY", "RUNNING"]
        assert store.overview().ready == 0, "no consumer sees a group that is served to its limit"
        gate.touch()
        wait_until(lambda: statuses(runs) == ["SUCCEEDED"] * 6)
    assert most_at_once([line for line in journal() if line[0].startswith("g")]) == 2
    assert most_at_once([line for line in journal() if line[0].startswith("h")]) == 1


def test_limits_survive_a_flush_and_are_said_once(store: Store, journal: Said, valkey: EmbeddedValkey) -> None:
    assert control.limit_group(QUEUE, "g", rate=(1, 3600)).changed
    assert str(control.limit_group(QUEUE, "g", rate=(1, 3600))) == "0 changed, 1 skipped: so already"
    valkey.flush()
    wait_until(lambda: recovery.rebuild(QUEUE), 20)
    note.enqueue_many([{"label": "a"}, {"label": "b"}])
    drain(lambda: journal() == [["a"]])
    serve()
    assert journal() == [["a"]]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"concurrency": "2"}, "concurrency"),
        ({"concurrency": 1.5}, "concurrency"),
        ({"rate": (0, 1)}, "rate"),
        ({"rate": (1,)}, "rate"),
        ({"rate": "1/m"}, "rate"),
        ({"rate": (1.5, 60)}, "rate"),
        ({"rate": (1, "60")}, "rate"),
        ({"rate": (1, 0)}, "rate"),
    ],
)
def test_a_limit_that_is_none_is_refused(store: Store, options: Any, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named} must be"):
        control.limit_group(QUEUE, "g", **options)
    with pytest.raises(ValueError, match="takes a group"):
        control.limit_group(QUEUE, "", concurrency=1)
    assert not JobGroup.objects.filter(group="g").exists()


def test_a_bell_that_came_twice_makes_no_consumer_too_many(store: Store, journal: Said, gate: Path) -> None:
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "QUEUES": {QUEUE: {"consumers": 2}}}):
        runs = waits.enqueue_many([{"label": f"{n}", "gate": str(gate), "group": f"g{n}"} for n in range(5)])
        with serving(), serving(), serving(), serving():
            wait_until(lambda: len(journal()) == 2, what="two of five groups are served")
            serve()
            assert sorted(statuses(runs)) == ["READY"] * 3 + ["RUNNING"] * 2
            assert store_for(QUEUE).overview().ready == 3
            gate.touch()
            wait_until(lambda: statuses(runs) == ["SUCCEEDED"] * 5)
    assert most_at_once(journal()) == 2


@pytest.mark.celery
def test_consumers_of_a_queue_over_all_workers(start_worker: StartWorker, journal: Said, gate: Path) -> None:
    """Four slots in two workers, three groups, and two consumers allowed."""
    options = {"QUEUES": {QUEUE: {"consumers": 2}}}
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, **options}):
        start_worker(groupjobs=options)
        start_worker(groupjobs=options)
        runs = waits.enqueue_many([{"label": f"{n}", "gate": str(gate), "group": f"g{n}"} for n in range(6)])
        wait_until(lambda: len(journal()) == 2, 30)
        settled = note.enqueue("ungated", group="g9")
        assert len([line for line in journal() if line[1] == "begins"]) == 2
        gate.touch()
        wait_until(lambda: statuses([*runs, settled]) == ["SUCCEEDED"] * 7, 30)
    assert most_at_once([line for line in journal() if len(line) == 2]) == 2
