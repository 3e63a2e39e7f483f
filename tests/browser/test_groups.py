"""Groups, queues and drift, as a person sees and mends them; by keyboard where it says so."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.admin.models import LogEntry
from django.test import Client
from playwright.sync_api import Page, expect

from groupjobs.models import JobGroup, JobRun
from groupjobs.moves import publish
from groupjobs.store import Store
from tests.admin.conftest import MakeRun
from tests.browser.conftest import OpenPage

GROUPS = "/admin/groupjobs/jobgroup/"
GROUP = f"{GROUPS}group/?queue=default&group=aircraft:N14228"
DRIFT = "/admin/groupjobs/jobrun/drift/"
MOST_STEPS = 60

Reserve = Callable[[JobRun], int]


def walk(page: Page, name: str) -> None:
    """Press Tab until the element with this name has the focus; each stop on the way must be seen."""
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        stop = page.evaluate("tests.focused()")
        assert stop["seen"], f"the focus on {stop['name']!r} cannot be seen"
        if stop["name"] == name:
            return
    raise AssertionError(f"{name} is not reached in {MOST_STEPS} steps")


def test_a_group_is_held_and_resumed_by_keyboard(
    boss: Client, open_page: OpenPage, make_run: MakeRun, store: Store
) -> None:
    publish([make_run(group="aircraft:N14228")])
    page = open_page(boss)
    page.goto(GROUP)
    walk(page, "Reason of the hold")
    page.keyboard.type("bird strike")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Hold default/aircraft:N14228: ")).to_be_visible()
    expect(page.locator(".gj-head")).to_contain_text("bird strike")
    assert JobGroup.objects.get(group="aircraft:N14228").held
    walk(page, "Resume")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Resume default/aircraft:N14228: ")).to_be_visible()
    expect(page.get_by_role("button", name="Hold")).to_be_visible()
    assert not JobGroup.objects.filter(held=True).exists()
    assert LogEntry.objects.count() == 2


def test_drift_is_mended(boss: Client, open_page: OpenPage, make_run: MakeRun, store: Store, reserve: Reserve) -> None:
    dead, unknown = make_run(group="a"), make_run(group="b")
    reserve(dead)
    store.client.zrem(f"{store.base}:workers", dead.worker)
    page = open_page(boss)
    page.goto(DRIFT)
    expect(page.locator("#content-main")).to_contain_text("its worker is dead")
    expect(page.locator("#content-main")).to_contain_text("unknown to Redis")
    page.get_by_role("button", name="Mend now").click()
    expect(page.locator("#content-main")).to_contain_text("No drift.")
    assert [JobRun.objects.get(pk=run.pk).status for run in (dead, unknown)] == ["READY", "READY"]
    assert set(store.snapshot([(dead.pk, "a"), (unknown.pk, "b")]).entries) == {dead.pk, unknown.pk}


def test_pages_refresh_without_being_loaded_again_until_somebody_stops_them(
    boss: Client, open_page: OpenPage, make_run: MakeRun, store: Store
) -> None:
    page = open_page(boss)
    page.goto(GROUPS)
    expect(page.get_by_text("No group waits for anything.")).to_be_visible()
    page.evaluate("window.sameDocument = true")
    publish([make_run(group="aircraft:N14228")])
    expect(page.get_by_role("link", name="aircraft:N14228")).to_be_visible()
    assert page.evaluate("window.sameDocument")
    page.goto(GROUP)
    page.get_by_label("Reason of the hold").fill("typed, but not sent")
    page.locator("body").click()
    page.keyboard.press("Escape")
    publish([make_run(group="aircraft:N14228")])
    expect(page.locator(".gj-facts").first).to_contain_text("2")
    assert page.get_by_label("Reason of the hold").input_value() == "typed, but not sent"
    page.goto(GROUPS)
    page.get_by_role("button", name="Stop updating").click()
    with page.expect_request("**/jobgroup/"):
        page.get_by_role("button", name="Update again").click()


def test_a_group_is_held_without_scripts(boss: Client, open_page: OpenPage, make_run: MakeRun, store: Store) -> None:
    publish([make_run(group="aircraft:N14228")])
    page = open_page(boss, java_script_enabled=False)
    page.goto(GROUPS)
    page.get_by_role("link", name="aircraft:N14228").click()
    page.get_by_role("button", name="Hold").click()
    expect(page.locator(".gj-head")).to_contain_text("held by boss")
    page.get_by_role("button", name="Skip head").click()
    page.get_by_role("button", name="Skip head").click()
    assert JobRun.objects.get().status == "CANCELLED"
