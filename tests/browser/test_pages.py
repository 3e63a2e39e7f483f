"""Every page in light and dark, wide and as narrow as a phone, in English and German: for everybody's eyes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from groupjobs.store import Store
from tests.admin.conftest import MakeRun
from tests.browser.conftest import DESK, OpenPage
from tests.browser.pictures import picture
from tests.browser.staged import Reserve, stage_everything

PHONE = {"width": 390, "height": 844}


VIEWS = {
    f"{name}{shade}": (size, scheme)
    for name, size in (("desk", DESK), ("phone", PHONE))
    for shade, scheme in (("", "light"), ("-dark", "dark"))
}
WORDS = re.compile(r"\b(?:Recover|Waiting|Queue|State|running|Runs|Retry|the)\b")


@pytest.mark.pictures
@pytest.mark.parametrize("language", ["en-GB", "de-DE"])
def test_every_page(
    boss: Client,
    open_page: OpenPage,
    make_run: MakeRun,
    reserve: Reserve,
    store: Store,
    settings: Any,
    tmp_path: Path,
    language: str,
) -> None:
    settings.DEMO_DESK = str(tmp_path)
    settings.GROUPJOBS = {**settings.GROUPJOBS, "WORKER_TTL": 600}
    staged = stage_everything(make_run, reserve, store, tmp_path)
    page = open_page(boss, locale=language)
    faults = {}
    for name, address in staged.pages.items():
        page.goto(address)
        faults.update(looks(page, name, language))
    for name, (address, button) in staged.questions.items():
        page.goto(address)
        page.locator(f"button[value={button}]").first.click()
        expect(page.locator(".gj-submit")).to_be_visible()
        faults.update(looks(page, name, language))
    assert {name: found for name, found in faults.items() if found} == {}


def looks(page: Page, name: str, language: str) -> dict[str, list[str]]:
    """Faults of the page in each view, by its name."""
    faults: dict[str, list[str]] = {}
    for view, (size, scheme) in VIEWS.items():
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        page.evaluate("tests.settle()")
        picture(page, f"{name}-{view}" if language == "en-GB" else f"{name}-{view}-{language}")
        faults[f"{name} {view}"] = page.evaluate("tests.faults()")
    if language == "de-DE" and page.url.rpartition("/admin/")[1]:
        said = page.locator(".gj, .gj-places, #changelist").all_inner_texts()
        faults[f"{name} words"] = WORDS.findall("\n".join(said))
    return faults


def test_damage_is_offered_by_no_other_server(open_page: OpenPage) -> None:
    page = open_page()
    page.goto("/")
    expect(page.get_by_text("Break something")).to_have_count(0)
    token = page.locator("[name=csrfmiddlewaretoken]").first.input_value()
    assert page.request.post("/demo/damage/", form={"what": "kill", "csrfmiddlewaretoken": token}).status == 404
    assert page.request.get("/demo/story/").status == 404
