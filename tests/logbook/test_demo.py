"""`manage.py demo` as a person runs it: its last line, its complaints, and that it leaves nothing running."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.servers.waiting import wait_until

pytestmark = [pytest.mark.once, pytest.mark.celery]

OURS = ("REDIS_URL", "BROKER_URL", "DATABASE_URL", "DJANGO_SETTINGS_MODULE", "GROUPJOBS")
LONGEST = 120.0  # seconds


def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    environment = {**{name: value for name, value in os.environ.items() if name not in OURS}, **variables}
    return subprocess.Popen(
        [sys.executable, "-u", str(settings.BASE_DIR / "manage.py"), "demo", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def demo(*arguments: str, **variables: str) -> tuple[int, str, str]:
    process = start(*arguments, **variables)
    output, errors = process.communicate(timeout=LONGEST)
    return process.returncode, output, errors


@pytest.fixture
def running() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A demo whose web server is up, and that server's port."""
    process = start()
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.match(r"web server: http://127\.0\.0\.1:(\d+)", line):
            yield process, int(found.group(1))
            break
    process.kill()
    process.communicate(timeout=LONGEST)


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_bad_lines_are_listed_and_the_good_ones_verified(bad_file: bytes, tmp_path: Path) -> None:
    file = tmp_path / "some bad lines.csv"
    file.write_bytes(bad_file)
    status, output, errors = demo("--csv", str(file))
    assert status == 0, output + errors
    last = output.splitlines()[-1]
    assert re.fullmatch(r"demo ok: 3 runs in 2 groups, 0 lost, 0 out of order, 0 twice, \d+ jobs/s", last)
    assert "3 lines refused:" in output
    assert "line 6: tailnum is empty" in output


@pytest.mark.slow
def test_a_killed_worker_and_a_flushed_redis_cost_no_leg() -> None:
    status, output, errors = demo("--kill", GROUPJOBS='{"WORKER_TTL": 2}')
    assert status == 0, output + errors
    last = output.splitlines()[-1]
    assert re.fullmatch(r"demo ok: 6091 runs in 2048 groups, 0 lost, 0 out of order, 0 twice, \d+ jobs/s", last)
    for fault in ("SIGKILL of the Celery worker, a new one started", "FLUSHALL of Redis"):
        assert re.search(rf"^{fault}: the next run began after \d+\.\d\d s$", output, re.MULTILINE)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"tailnum,origin\nN1,EWR\n", "missing columns: flight_date, sched_dep_time"),
        (b"", "The submitted file is empty."),
        (None, "there is no file"),
    ],
)
def test_a_file_that_cannot_be_used_fails_and_says_why(content: bytes | None, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "flights.csv"
    if content is not None:
        file.write_bytes(content)
    status, output, errors = demo("--csv", str(file))
    assert status == 1
    assert reason in errors
    assert "demo ok" not in output


def test_an_interrupted_demo_stops_what_it_started(running: tuple[subprocess.Popen[str], int]) -> None:
    process, port = running
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LONGEST)
    assert process.returncode == 130
    assert "demo stopped before its end" in errors
    assert not listens(port)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_killed_demo_leaves_no_server_behind(running: tuple[subprocess.Popen[str], int]) -> None:
    process, port = running
    process.kill()
    wait_until(lambda: not listens(port), 10)
