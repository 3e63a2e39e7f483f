"""`groupjobs_status` as a whole: what it shows, and what it refuses."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from groupjobs import control
from groupjobs.explain import traffic
from groupjobs.models import JobProgress, JobRun
from groupjobs.moves import publish
from groupjobs.store import Store
from project.embedded import EmbeddedValkey
from tests.admin.conftest import MakeRun

Reserve = Callable[[JobRun], int]


def shown(*options: str) -> str:
    out = StringIO()
    call_command("groupjobs_status", *options, stdout=out)
    return out.getvalue()


def facts(*options: str) -> Any:
    return json.loads(shown(*options, "--json"))


def test_queues_workers_and_groups(make_run: MakeRun, store: Store, reserve: Reserve) -> None:
    running = make_run(group="aircraft:N1")
    reserve(running)
    publish([make_run(group="aircraft:N2"), make_run(group="aircraft:N2")])
    make_run("ABANDONED", reason="unknown_job", report_attempts=10)
    control.hold("default", "held", "printer", "anna")
    found = facts()
    (queue,) = found["queues"]
    expected = {"queue": "default", "state": "open", "waiting": 2, "running": 1, "groups_ready": 1, "workers": 1}
    assert {name: queue[name] for name in expected} == expected
    assert (queue["groups_held"], queue["drift"], queue["counters"]["reserved"]) == (1, {}, 1)
    assert (found["unreported"], found["parked"]) == (1, 1)
    (worker,) = found["workers"]
    assert (worker["worker"], worker["runs"], worker["served"] < 60) == (running.worker, [running.pk], True)
    assert [(group["group"], group["state"], group["backlog"]) for group in found["groups"]] == [
        ("aircraft:N1", "running", 1),
        ("aircraft:N2", "waiting", 2),
    ]
    text = shown()
    for part in ("default", running.worker[:20], "aircraft:N2", f"#{running.pk}", "of them parked: 1"):
        assert part in text, part


def test_drift_and_the_last_hour_are_shown(make_run: MakeRun, store: Store) -> None:
    traffic.forget()
    make_run(unpublished=True)
    ended = timezone.now() - timedelta(minutes=3)
    make_run("SUCCEEDED", finished_at=ended, started_at=ended)
    (queue,) = facts()["queues"]
    assert queue["drift"] == {"republished": 1}
    assert queue["last_hour"]["succeeded"] == 1
    assert "1 republished" in shown()


def test_a_group_in_full(make_run: MakeRun, store: Store) -> None:
    run = make_run(run_after=timezone.now() + timedelta(hours=2, minutes=1), yields=True)
    publish([run])
    (group,) = facts("--group", "g")["groups"]
    assert (group["state"], group["head"]["run"], group["line"]) == ("scheduled", run.pk, [run.pk])
    assert group["until"] == run.run_after.isoformat()  # type: ignore[union-attr]
    text = shown("--group", "g")
    for part in ("scheduled", f"#{run.pk} is due in 2 h", "Try at once", run.job):
        assert part in text, part


def test_a_run_without_a_group_is_asked_for_by_its_number(make_run: MakeRun, store: Store) -> None:
    run = make_run(group="")
    publish([run])
    (group,) = facts("--group", f"#{run.pk}")["groups"]
    assert (group["run"], group["state"]) == (run.pk, "no_worker")


def test_a_group_in_which_nothing_waits_is_idle(store: Store) -> None:
    (group,) = facts("--group", "nobody")["groups"]
    assert (group["state"], group["head"]) == ("idle", None)


def test_progress_of_an_earlier_attempt_is_not_this_one_s_silence(
    make_run: MakeRun, store: Store, reserve: Reserve
) -> None:
    reserve(make_run())
    JobProgress.objects.update(done=3, updated_at=timezone.now() - timedelta(hours=1))
    assert facts("--group", "g")["groups"][0]["state"] == "running"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--queue", "defualt"), "There is no queue 'defualt'.*default"),
        (("--group", ""), "--group must be the name of a group"),
        (("--group", "a\0b"), "--group must be the name of a group"),
        (("--group", "x" * 256), "--group must be the name of a group"),
        (("--watch", "0"), "--watch must be seconds from 0.1"),
        (("--watch", "nan"), "--watch must be seconds from 0.1"),
    ],
)
def test_bad_input_is_refused_with_status_2(options: tuple[str, ...], problem: str) -> None:
    with pytest.raises(CommandError, match=problem) as refused:
        shown(*options)
    assert refused.value.returncode == 2


def test_watching_says_it_again(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    out = StringIO()
    with pytest.raises(KeyboardInterrupt):
        call_command("groupjobs_status", "--json", "--watch", "7", stdout=out)
    assert pauses == [7.0] * 3
    assert [json.loads(line)["queues"][0]["queue"] for line in out.getvalue().splitlines()] == ["default"] * 3


def test_a_queue_that_the_settings_do_not_name(make_run: MakeRun, store: Store) -> None:
    make_run(queue="former")
    (group,) = facts("--group", "g")["groups"]
    assert (group["queue"], group["state"]) == ("former", "unnamed")
    assert [queue["state"] for queue in facts()["queues"]] == ["open", "unnamed"]
    assert "the settings name no queue former, so nobody serves it" in shown()


def test_names_that_look_like_markup_are_shown_as_they_are(make_run: MakeRun, store: Store) -> None:
    name = "[/red] [bold]x"
    publish([make_run(group=name)])
    control.hold("default", name, "[/b]")
    out = StringIO()
    call_command("recover_ghosts", "--dry-run", stdout=out)
    for text in (shown(), shown("--group", name), out.getvalue()):
        assert name in text
        assert ": [/b]" in text


def test_redis_that_is_down_is_a_fact(make_run: MakeRun, valkey: EmbeddedValkey) -> None:
    make_run()
    valkey.kill()
    found = facts()
    assert (found["queues"][0]["state"], found["groups"][0]["state"]) == ("down", "unreachable")
    assert "Redis does not answer" in shown()
