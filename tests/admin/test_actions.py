"""Actions: confirmed, permitted, told, recorded, and harmless when clicked twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.test import Client
from django.utils import timezone

from groupjobs.admin import drift
from groupjobs.models import JobRun
from groupjobs.recovery import routine
from groupjobs.store import Store
from project.embedded import EmbeddedValkey
from tests.admin.conftest import MakeRun, Staff

LIST = "/admin/groupjobs/jobrun/"

Reserve = Callable[[JobRun], int]


def act(client: Client, action: str, *runs: JobRun, query: str = "", **more: Any) -> Any:
    data = {"action": action, "_selected_action": [run.pk for run in runs], "select_across": "0", **more}
    return client.post(LIST + query, data)


def done(client: Client, action: str, *runs: JobRun, **more: Any) -> str:
    answer = act(client, action, *runs, confirmed="yes", **more)
    assert answer.status_code == 302
    return [str(message) for message in get_messages(answer.wsgi_request)][-1]


def ghost(run: JobRun, store: Store, reserve: Reserve) -> None:
    """Its worker is dead, and nobody has healed it yet."""
    reserve(run)
    JobRun.objects.filter(pk=run.pk).update(alone=True)
    store.client.zrem(f"{store.base}:workers", run.worker)


def statuses(*runs: JobRun) -> list[str]:
    return [JobRun.objects.get(pk=run.pk).status for run in runs]


def test_an_action_asks_first_and_says_what_will_change(
    boss: Client, make_run: MakeRun, store: Store, reserve: Reserve
) -> None:
    dead, ended = make_run(group="a"), make_run("SUCCEEDED")
    ghost(dead, store, reserve)
    answer = act(boss, "recover", dead, ended, index=0)
    text = answer.content.decode()
    assert answer.status_code == 200
    assert "1 requeued" in text
    assert "1 already succeeded" in text
    assert f'name="_selected_action" value="{dead.pk}"' in text
    assert statuses(dead) == ["RUNNING"]
    assert not LogEntry.objects.exists()


def test_recover_heals_a_ghost_once(boss: Client, make_run: MakeRun, store: Store, reserve: Reserve) -> None:
    dead, held, ended = make_run(group="a"), make_run(group="b"), make_run("SUCCEEDED")
    ghost(dead, store, reserve)
    reserve(held)
    said = done(boss, "recover", dead, held, ended)
    assert said == "Recover: 1 changed, 2 skipped: 1 its worker lives, 1 already succeeded"
    assert statuses(dead, held, ended) == ["READY", "RUNNING", "SUCCEEDED"]
    assert JobRun.objects.get(pk=dead.pk).losses == 1
    assert done(boss, "recover", dead) == "Recover: 0 changed, 1 skipped: waits in its place"
    assert JobRun.objects.get(pk=dead.pk).losses == 1
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.change_message) == (str(dead.pk), "Recover: requeued")


@pytest.mark.django_db(transaction=True)
def test_abandon_ends_ghosts_only(boss: Client, make_run: MakeRun, store: Store, reserve: Reserve) -> None:
    dead, held, waiting = make_run(group="a"), make_run(group="b"), make_run(group="c")
    ghost(dead, store, reserve)
    reserve(held)
    assert done(boss, "abandon", dead, held) == "Abandon: 1 changed, 1 skipped: its worker lives"
    assert statuses(dead, held, waiting) == ["ABANDONED", "RUNNING", "READY"]
    assert done(boss, "abandon", dead) == "Abandon: 0 changed, 1 skipped: already abandoned"


def test_recover_publishes_what_redis_does_not_know(boss: Client, make_run: MakeRun, store: Store) -> None:
    run = make_run(unpublished=True)
    assert done(boss, "recover", run) == "Recover: 1 changed, 0 skipped"
    assert store.snapshot([(run.pk, "g")]).entries[run.pk].place == "line"
    assert not JobRun.objects.get(pk=run.pk).unpublished


def test_retry_and_cancel_twice(boss: Client, make_run: MakeRun, store: Store) -> None:
    failed, waiting = make_run("FAILED"), make_run()
    assert done(boss, "retry", failed, waiting) == "Retry: 1 changed, 1 skipped: already ready"
    assert done(boss, "retry", failed) == "Retry: 0 changed, 1 skipped: already ready"
    assert JobRun.objects.get(pk=failed.pk).life == 2
    assert done(boss, "cancel", waiting) == "Cancel: 1 changed, 0 skipped"
    assert done(boss, "cancel", waiting) == "Cancel: 0 changed, 1 skipped: already cancelled"
    assert LogEntry.objects.count() == 2


def test_all_matching_runs(boss: Client, make_run: MakeRun, store: Store) -> None:
    failed = [make_run("FAILED") for _ in range(55)]
    kept = make_run("CANCELLED")
    page = boss.get(LIST + "?status=FAILED").content.decode()
    assert "Select all matching runs" in page
    answer = act(boss, "retry", failed[0], query="?status=FAILED", select_across="1", index=0)
    assert "55 retried" in answer.content.decode()
    answer = act(boss, "retry", failed[0], query="?status=FAILED", select_across="1", confirmed="yes")
    assert [str(m) for m in get_messages(answer.wsgi_request)] == ["Retry: 55 changed, 0 skipped"]
    assert statuses(kept) == ["CANCELLED"]
    assert not JobRun.objects.filter(status="FAILED").exists()


@pytest.mark.api
def test_from_the_page_of_a_run_back_to_it(boss: Client, make_run: MakeRun, store: Store) -> None:
    run = make_run("FAILED")
    page = boss.get(f"{LIST}{run.pk}/change/").content.decode()
    assert '<button type="submit" name="action" value="retry"' in page
    asked = act(boss, "retry", run, from_run=run.pk)
    assert f'name="from_run" value="{run.pk}"' in asked.content.decode()
    answer = act(boss, "retry", run, from_run=run.pk, confirmed="yes")
    assert answer["Location"] == f"{LIST}{run.pk}/change/"
    assert statuses(run) == ["READY"]


def test_retry_as_new_runs_once(boss: Client, make_run: MakeRun, store: Store) -> None:
    failed = make_run("FAILED")
    assert done(boss, "retry_as_new", failed) == "Retry as new runs: 1 changed, 0 skipped"
    assert done(boss, "retry_as_new", failed) == "Retry as new runs: 0 changed, 1 skipped: retried already"
    assert [run.status for run in JobRun.objects.order_by("pk")] == ["FAILED", "READY"]


def test_cancel_by_force_also_after_asking_in_vain(
    boss: Client, make_run: MakeRun, store: Store, reserve: Reserve
) -> None:
    run = make_run()
    reserve(run)
    assert done(boss, "cancel", run) == "Cancel: 1 changed, 0 skipped"
    assert done(boss, "cancel", run) == "Cancel: 0 changed, 1 skipped: asked already"
    assert done(boss, "kill", run) == "Cancel by force: 1 changed, 0 skipped"
    assert statuses(run) == ["RUNNING"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("attempts", "wait"), [(10, 0), (3, 3600)])
def test_recover_reports_a_parked_abandonment_again(
    boss: Client, make_run: MakeRun, store: Store, attempts: int, wait: int
) -> None:
    due = timezone.now() + timedelta(seconds=wait)
    run = make_run("ABANDONED", reason="unknown_job", report_attempts=attempts, report_after=due)
    assert "1 reported" in act(boss, "recover", run).content.decode()
    assert done(boss, "recover", run) == "Recover: 1 changed, 0 skipped"
    assert JobRun.objects.get().abandon_reported_at is not None
    assert done(boss, "recover", run) == "Recover: 0 changed, 1 skipped: already abandoned"


@pytest.mark.parametrize("action", ["recover", "retry", "cancel", "abandon"])
def test_each_action_has_its_own_permission(staff: Staff, make_run: MakeRun, store: Store, action: str) -> None:
    run = make_run("FAILED" if action == "retry" else "READY", unpublished=action != "retry")
    before = (run.status, run.unpublished)
    others = {"recover", "retry", "cancel", "abandon"} - {action}
    barred = staff("view_jobrun", *(f"{name}_run" for name in others))
    assert f'value="{action}"' not in barred.get(LIST).content.decode()
    act(barred, action, run, confirmed="yes")
    run.refresh_from_db()
    assert (run.status, run.unpublished) == before
    allowed = staff("view_jobrun", f"{action}_run")
    assert f'value="{action}"' in allowed.get(LIST).content.decode()
    assert act(allowed, action, run).status_code == 200


def test_changes_need_post_and_a_token(staff: Staff, make_run: MakeRun, store: Store) -> None:
    run = make_run("FAILED")
    strict = staff("view_jobrun", "retry_run", "recover_run", csrf=True)
    assert act(strict, "retry", run, confirmed="yes").status_code == 403
    assert strict.post(f"{LIST}drift/", {"queue": "default"}).status_code == 403
    strict.get(f"{LIST}?action=retry&_selected_action={run.pk}&confirmed=yes")
    assert statuses(run) == ["FAILED"]


def test_redis_down_is_said_and_nothing_is_changed(boss: Client, make_run: MakeRun, valkey: EmbeddedValkey) -> None:
    run = make_run("RUNNING")
    valkey.kill()
    said = done(boss, "recover", run)
    assert said.startswith("Redis does not answer, and nothing was changed")
    assert statuses(run) == ["RUNNING"]
    assert boss.get(LIST).status_code == 200
    assert "Redis does not answer" in boss.get(f"{LIST}drift/").content.decode()


def test_drift_is_shown_and_mended(
    boss: Client, staff: Staff, make_run: MakeRun, store: Store, reserve: Reserve
) -> None:
    dead, lost = make_run(group="a"), make_run(group="b")
    ghost(dead, store, reserve)
    page = boss.get(f"{LIST}drift/").content.decode()
    for part in ("1 requeued", "1 republished", "its worker is dead", "unknown to Redis", "2 live runs examined"):
        assert part in page, part
    assert statuses(dead, lost) == ["RUNNING", "READY"]
    assert staff("view_jobrun").post(f"{LIST}drift/", {"queue": "default"}).status_code == 403
    assert boss.post(f"{LIST}drift/", {"queue": "nonsense"}).status_code == 403
    answer = boss.post(f"{LIST}drift/", {"queue": "default"}, follow=True).content.decode()
    assert "Queue default: " in answer
    assert "No drift." in answer
    assert statuses(dead, lost) == ["READY", "READY"]
    assert LogEntry.objects.get().object_id == "default"


def test_f1_a_large_queue_is_mended_in_bounded_steps(
    boss: Client, make_run: MakeRun, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routine, "PAGE", 2)
    monkeypatch.setattr(drift, "MENDING", 0.0)
    runs = [make_run(group=f"g{number}") for number in range(5)]
    answer = boss.post(f"{LIST}drift/", {"queue": "default"}, follow=True)
    assert f"go on from #{runs[1].pk}" in answer.content.decode()
    assert f'name="after" value="{runs[1].pk}"' in answer.content.decode()
    known = store.snapshot([(run.pk, run.group) for run in runs]).entries
    assert sorted(known) == [run.pk for run in runs[:2]]
    boss.post(f"{LIST}drift/", {"queue": "default", "after": runs[1].pk})
    answer = boss.post(f"{LIST}drift/", {"queue": "default", "after": runs[3].pk}, follow=True)
    assert "go on from" not in answer.content.decode().rpartition("republished")[2]
    assert len(store.snapshot([(run.pk, run.group) for run in runs]).entries) == 5
