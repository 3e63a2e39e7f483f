"""Filters of the list of runs beside status, queue and job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.utils import timezone

from groupjobs.admin.times import first_since
from groupjobs.models import JobRun
from groupjobs.moves import publish
from groupjobs.store import Store
from project.embedded import EmbeddedValkey
from tests.admin.conftest import MakeRun
from tests.admin.test_runs import LIST, listed

Reserve = Callable[[JobRun], int]


def ago(**span: float) -> Any:
    return timezone.now() - timedelta(**span)


def test_ghosts(boss: Client, make_run: MakeRun, store: Store, reserve: Reserve, valkey: EmbeddedValkey) -> None:
    dead, held, lost = make_run(group="a"), make_run(group="b"), make_run("RUNNING", group="c")
    for run in (dead, held):
        reserve(run)
    publish([make_run(group="d")])
    store.client.zrem(f"{store.base}:workers", dead.worker)
    assert listed(boss, "?trouble=ghost") == [lost.pk, dead.pk]
    valkey.kill()
    assert listed(boss, "?trouble=ghost") == []


def test_unreported_and_unpublished(boss: Client, make_run: MakeRun) -> None:
    silent = make_run("ABANDONED")
    make_run("ABANDONED", abandon_reported_at=timezone.now())
    waiting = make_run(unpublished=True)
    assert listed(boss, "?trouble=unreported") == [silent.pk]
    assert listed(boss, "?trouble=unpublished") == [waiting.pk]
    assert len(listed(boss, "?trouble=nonsense")) == 3


def test_finished_and_enqueued(boss: Client, make_run: MakeRun) -> None:
    old = make_run("SUCCEEDED", enqueued_at=ago(days=8), finished_at=ago(days=7, hours=1))
    day = make_run("SUCCEEDED", enqueued_at=ago(hours=20), finished_at=ago(hours=3))
    new = make_run("SUCCEEDED", enqueued_at=ago(minutes=5), finished_at=ago(minutes=4))
    live = make_run()
    assert listed(boss, "?finished=hour") == [new.pk]
    assert listed(boss, "?finished=week") == [new.pk, day.pk]
    assert listed(boss, "?enqueued=hour") == [live.pk, new.pk]
    assert listed(boss, "?enqueued=day") == [live.pk, new.pk, day.pk]
    assert listed(boss, "?enqueued=nonsense") == [live.pk, new.pk, day.pk, old.pk]


def test_the_first_id_since_a_moment_is_found_by_halving(boss: Client, make_run: MakeRun) -> None:
    assert first_since(timezone.now()) in (0, 1)
    assert listed(boss, "?enqueued=hour") == []
    runs = [make_run(enqueued_at=ago(minutes=100 - number)) for number in range(100)]
    JobRun.objects.filter(pk__in=[run.pk for run in runs[10:60]]).delete()
    assert first_since(ago(minutes=30, seconds=30)) == runs[70].pk
    assert runs[9].pk < first_since(ago(minutes=70)) <= runs[60].pk
    assert first_since(ago(minutes=-1)) == runs[-1].pk + 1


def test_a_group_with_its_ended_runs_and_a_worker(boss: Client, make_run: MakeRun) -> None:
    ended, live = make_run("SUCCEEDED", group="g1"), make_run("RUNNING", group="g1", worker="host:1:a")
    make_run(group="g2")
    make_run("SUCCEEDED", group="g2", worker="host:1:a")
    assert listed(boss, "?group=g1") == [live.pk, ended.pk]
    assert listed(boss, "?worker=host:1:a") == [live.pk]
    page = boss.get(LIST).content.decode()
    assert "worker=" not in page


@pytest.mark.parametrize("query", ["?queue=%00", "?job=%00", "?group=%00", "?worker=%00", "?q=%00", "?p=%00", "?e=1"])
def test_nonsense_in_the_address_is_no_error(boss: Client, make_run: MakeRun, query: str) -> None:
    make_run()
    assert boss.get(LIST + query).status_code in (200, 302)


@pytest.mark.api
@pytest.mark.skipif(not hasattr(admin, "ActionLocation"), reason="from Django 6.1 on")
def test_the_change_form_takes_actions_itself(boss: Client, make_run: MakeRun, store: Store) -> None:
    run = make_run("FAILED")
    data = {f"{admin.ActionLocation.CHANGE_FORM.value}-action": "retry", "_selected_action": run.pk, "index": 0}
    answer = boss.post(f"{LIST}{run.pk}/change/", data)
    assert answer.status_code == 200
    assert f'action="{LIST}"' in answer.content.decode()
