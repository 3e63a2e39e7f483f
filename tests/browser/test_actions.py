"""Actions on runs, as a person presses them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from playwright.sync_api import Page, expect

from groupjobs.models import JobRun
from groupjobs.store import Store
from tests.admin.conftest import MakeRun, Staff
from tests.browser.conftest import OpenPage
from tests.browser.pictures import picture
from tests.conftest import StartWorker
from tests.jobsapp.jobs import inspects
from tests.servers.waiting import wait_until
from tests.servers.worker import Worker

RUNS = "/admin/groupjobs/jobrun/"
ACT = "/admin/groupjobs/jobgroup/act/"


def address(run: JobRun) -> str:
    return f"{RUNS}{run.pk}/change/"


def die_with_its_host(worker: Worker) -> None:
    """Nothing of it is left that could tell of its death."""
    below = worker.descendants()
    os.killpg(worker.pid, signal.SIGKILL)
    for process in below:
        process.kill()
    worker.wait()


def confirm(page: Page, action: str, foreseen: str) -> None:
    expect(page.locator(".gj-foreseen")).to_contain_text(foreseen)
    page.locator(".gj-submit").get_by_role("button", name=action).click()


@pytest.mark.celery
@pytest.mark.pictures
def test_a_ghost_is_recovered_and_ends_well(
    boss: Client, open_page: OpenPage, start_worker: StartWorker, settings: Any, tmp_path: Path
) -> None:
    settings.GROUPJOBS = {**settings.GROUPJOBS, "WORKER_TTL": 2}
    worker = start_worker(groupjobs={"WORKER_TTL": 2}, env={"GROUPJOBS_TEST_GATE": str(tmp_path / "gate")})
    number = int(inspects.enqueue(tail="N14228", engines=2).id)
    wait_until((tmp_path / "gate.first").exists, what="its first attempt runs")
    run = JobRun.objects.get(pk=number)
    page = open_page(boss, color_scheme="light", viewport={"width": 1040, "height": 780})
    page.goto(address(run))
    expect(page.locator(".gj-head")).to_contain_text(f"#{run.pk} runs")
    page.evaluate("window.sameDocument = true")
    die_with_its_host(worker)
    expect(page.locator(".gj-head")).to_contain_text("which is dead")
    assert page.evaluate("window.sameDocument")
    page.get_by_role("button", name="Recover").click()
    confirm(page, "Recover", "1 requeued")
    expect(page.get_by_text("Recover: 1 changed, 0 skipped")).to_be_visible()
    expect(page.locator(".gj-head")).to_contain_text("READY")
    start_worker(groupjobs={"WORKER_TTL": 2}, env={"GROUPJOBS_TEST_GATE": str(tmp_path / "gate")})
    expect(page.locator(".gj-head")).to_contain_text("SUCCEEDED")
    expect(page.locator(".gj-tries .gj-try strong")).to_have_text(["lost", "succeeded"])
    expect(page.get_by_role("button", name="Retry", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Recover")).to_have_count(0)
    expect(page.locator(".gj-facts")).to_contain_text("2 / 2")
    picture(page, "recovered-run", whole=False)


def test_two_clicks_are_one_deed(boss: Client, open_page: OpenPage, make_run: MakeRun, store: Store) -> None:
    run = make_run("FAILED")
    page, late = open_page(boss), open_page(boss)
    for window in (page, late):
        window.goto(address(run))
        window.get_by_role("button", name="Retry", exact=True).click()
        expect(window.locator(".gj-foreseen")).to_contain_text("1 retried")
    page.locator(".gj-submit").get_by_role("button", name="Retry").dblclick()
    expect(page.locator(".messagelist")).to_contain_text("Retry: ")
    wait_until(LogEntry.objects.exists, what="it is recorded")
    late.locator(".gj-submit").get_by_role("button", name="Retry").click()
    expect(late.locator(".messagelist")).to_contain_text("Retry: 0 changed, 1 skipped: already ready")
    run.refresh_from_db()
    assert (run.status, run.life, LogEntry.objects.count()) == ("READY", 2, 1)


def test_who_may_only_look_sees_no_button_and_is_refused(
    staff: Staff, open_page: OpenPage, make_run: MakeRun, store: Store
) -> None:
    run = make_run("FAILED", group="aircraft:N14228")
    page = open_page(staff("view_jobrun"))
    pages = (RUNS, address(run), "/admin/groupjobs/jobgroup/queues/", f"{RUNS}drift/")
    for place in (*pages, "/admin/groupjobs/jobgroup/group/?queue=default&group=aircraft:N14228"):
        page.goto(place)
        expect(page.locator("h1").last).to_be_visible()
        deeds = page.locator("main form[method=post] button, main .actions button, main [name=action]")
        expect(deeds).to_have_count(0)
    page.goto("/admin/password_change/")
    token = page.locator("[name=csrfmiddlewaretoken]").last.input_value()
    for place, form in (
        (ACT, {"deed": "hold", "queue": "default", "group": "aircraft:N14228"}),
        (f"{RUNS}drift/", {"queue": "default"}),
    ):
        assert page.request.post(place, form={**form, "csrfmiddlewaretoken": token}).status == 403
    form = {"action": "retry", "_selected_action": str(run.pk), "confirmed": "yes", "csrfmiddlewaretoken": token}
    page.request.post(RUNS, form=form)
    run.refresh_from_db()
    assert (run.status, run.life, LogEntry.objects.count()) == ("FAILED", 1, 0)


def test_all_matching_runs_are_selected_across_pages(
    boss: Client, open_page: OpenPage, make_run: MakeRun, store: Store
) -> None:
    for _ in range(53):
        make_run("FAILED")
    page = open_page(boss)
    page.goto(f"{RUNS}?status=FAILED")
    page.locator("#action-toggle").check()
    page.get_by_role("button", name="Select all matching runs").click()
    choose(page, "Retry")
    confirm(page, "Retry", "53 retried")
    expect(page.get_by_text("Retry: 53 changed, 0 skipped")).to_be_visible()
    assert not JobRun.objects.filter(status="FAILED").exists()


@pytest.mark.parametrize("java_script_enabled", [True, False])
def test_an_action_from_the_list(
    boss: Client, open_page: OpenPage, make_run: MakeRun, store: Store, java_script_enabled: bool
) -> None:
    kept, chosen = make_run(group="a"), make_run(group="b")
    page = open_page(boss, java_script_enabled=java_script_enabled)
    page.goto(RUNS)
    page.locator(f"input[name=_selected_action][value='{chosen.pk}']").check()
    choose(page, "Cancel")
    confirm(page, "Cancel", "1 cancelled")
    expect(page.get_by_text("Cancel: 1 changed, 0 skipped")).to_be_visible()
    assert [JobRun.objects.get(pk=run.pk).status for run in (kept, chosen)] == ["READY", "CANCELLED"]


def choose(page: Page, action: str) -> None:
    """Whether the list offers its actions in a menu or as buttons."""
    menu = page.locator("select[name=action]")
    menu.first.select_option(label=action)
    page.locator(".actions button[name=index]").first.click()
