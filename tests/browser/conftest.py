"""A real Chromium before a real server: each page is watched, and complains when its test ends."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.admin.conftest import make_run, reserve, staff, store
from tests.browser.watch import watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["make_run", "reserve", "staff", "store"]

FOLDER = Path(__file__).parent
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE = 30_000  # milliseconds that a page may take to show what is expected
DESK = {"width": 1280, "height": 900}

# Playwright's loop runs in the thread of the tests, which use the database all the same.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
if importlib.util.find_spec("playwright") is None:
    collect_ignore_glob = ["test_*.py"]


class OpenPage(Protocol):
    """Opens a window on the test's web server; `client` lends its login, `options` go to `new_context`."""

    def __call__(self, client: Client | None = None, **options: Any) -> Page:
        """Open one more."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser of the system, in a new empty profile."""
    from playwright.sync_api import expect, sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no Chromium is installed")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def open_window(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens windows; one that complained in its console fails the test."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def open_one(base: str, client: Client | None = None, **options: Any) -> Page:
        context = chromium.new_context(**{"base_url": base, "viewport": DESK, "locale": "en-GB", **options})
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        for name, cookie in client.cookies.items() if client else ():
            context.add_cookies([{"name": name, "value": cookie.value, "url": base}])
        context.add_init_script(path=FOLDER / "look.js")
        page = context.new_page()
        watch(page, complaints)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def open_page(live_server: Any, open_window: Callable[..., Page]) -> OpenPage:
    """Windows on the web server of this process; they are closed before the rows go."""
    return partial(open_window, live_server.url)


@pytest.fixture
def boss(transactional_db: None) -> Client:
    """A superuser's login."""
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need a browser and real commits."""
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker("browser")
            item.add_marker(pytest.mark.django_db(transaction=True))
