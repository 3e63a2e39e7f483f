"""`make serve` as a newcomer meets it: a file, its bar, a killed worker, a flushed Redis, and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from tests.servers.waiting import wait_until

pytestmark = pytest.mark.celery

OURS = ("REDIS_URL", "BROKER_URL", "DATABASE_URL", "DJANGO_SETTINGS_MODULE", "GROUPJOBS")
FLIGHTS = Path(settings.BASE_DIR) / "project" / "data" / "flights_2013_w1.csv"
LEGS = 3_000
LONG = 90_000  # milliseconds
OpenWindow = Callable[..., Page]


@dataclass
class Served:
    """A running `make serve`: its address, and the password that it printed."""

    address: str
    password: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """It ends by Ctrl-C, with status 0, and leaves nothing running."""
    database = tmp_path_factory.mktemp("serve") / "db.sqlite3"
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    process = subprocess.Popen(
        [sys.executable, "-m", "project.serve", "--port", "0"],
        env={**environment, "DATABASE_URL": f"sqlite:///{database}", "GROUPJOBS": '{"WORKER_TTL": 2}'},
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield _announced(process)
        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 0
        wait_until(lambda: not any(found.is_running() for found in below), what="nothing is left of it")
    finally:
        process.kill()
        process.communicate()


def _announced(process: subprocess.Popen[str]) -> Served:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.match(r"Admin: (http://127\.0\.0\.1:\d+)/admin/ .* the password (\S+)$", line):
            return Served(found[1], found[2])
    raise AssertionError(f"it ended with status {process.wait()}")


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first legs of the bundled file."""
    path = tmp_path_factory.mktemp("flights") / "flights.csv"
    path.write_text("".join(FLIGHTS.read_text().splitlines(keepends=True)[: LEGS + 1]))
    return path


def upload(page: Page, file: Path) -> None:
    page.goto("/")
    page.get_by_label("CSV file of flights").set_input_files(file)
    page.get_by_role("button", name="Upload").click()


def finished(page: Page, legs: int) -> None:
    expect(page.get_by_role("status")).to_have_text("finished", timeout=LONG)
    expect(page.locator("#bar")).to_have_js_property("value", 100)
    expect(page.locator("#entered")).to_have_text(str(legs))


def test_a_worker_is_killed_and_redis_flushed_and_no_leg_is_lost(
    served: Served, open_window: OpenWindow, flights: Path
) -> None:
    page = open_window(served.address)
    upload(page, flights)
    expect(page.get_by_role("status")).to_have_text("entering", timeout=LONG)
    expect(page.locator("#eta")).to_contain_text("s left")
    story = page.locator("#story")
    for number in range(1, 9):
        # A worker may have committed what it had in hand in the instant before it was killed.
        page.get_by_role("button", name="Kill a worker").click()
        fault = story.locator(f"li[value='{number}']")
        expect(fault).to_contain_text(re.compile(r"healed in \d+\.\d\d s|nothing in hand"))
        if "healed" in fault.inner_text():
            break
    expect(fault).to_contain_text(re.compile(r"healed in \d+\.\d\d s"))
    expect(fault).to_contain_text(re.compile(r"Process \d+ was started in its place"))
    page.get_by_role("button", name="Flush Redis").click()
    expect(story.locator("li").first).to_contain_text(
        re.compile(r"runs? waited in it.*healed in \d+\.\d\d s", re.DOTALL)
    )
    finished(page, LEGS)
    page.get_by_role("link", name="Look into the logbooks").click()
    page.get_by_label("Tail number begins with").fill("n1")
    page.get_by_role("button", name="Find").click()
    page.locator("tbody a").first.click()
    expect(page.locator(".badge")).to_have_text("unbroken")


def test_without_scripts_the_bar_is_finished_too(served: Served, open_window: OpenWindow, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("".join(FLIGHTS.read_text().splitlines(keepends=True)[:201]))
    page = open_window(served.address, java_script_enabled=False)
    upload(page, few)
    finished(page, 200)


def test_the_printed_login_opens_the_admin(served: Served, open_window: OpenWindow) -> None:
    page = open_window(served.address)
    page.goto("/")
    page.get_by_role("link", name="Admin").click()
    page.get_by_label("Username").fill("demo")
    page.get_by_label("Password").fill(served.password)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Runs").first.click()
    expect(page.locator("#result_list")).to_be_visible()


def test_damage_needs_a_token(served: Served, open_window: OpenWindow) -> None:
    page = open_window(served.address)
    assert page.request.post("/demo/damage/", form={"what": "kill"}).status == 403
    assert page.request.get("/demo/damage/").status == 405
