from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupjobs.watchdog import processes
from groupjobs.watchdog.processes import Process, look
from groupjobs.watchdog.shelf import Shelf
from tests.servers.waiting import wait_until


@pytest.fixture(params=["descriptor", "looking"])
def sleeper(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process, seen through a descriptor or by looking again and again."""
    if request.param == "looking":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def test_a_process_lives_until_it_has_ended(sleeper: subprocess.Popen[bytes]) -> None:
    process = Process(sleeper.pid)
    assert not process.ended()
    process.kill()
    wait_until(process.ended)  # nobody has waited for it yet
    assert sleeper.wait() == -signal.SIGKILL
    assert process.ended()
    process.kill()


def test_a_stopped_process_is_not_dead(sleeper: subprocess.Popen[bytes]) -> None:
    process = Process(sleeper.pid)
    assert not process.stopped()
    sleeper.send_signal(signal.SIGSTOP)
    wait_until(process.stopped)
    assert not process.ended()
    sleeper.send_signal(signal.SIGCONT)
    wait_until(lambda: not process.stopped())


def test_a_later_process_with_the_same_number_is_another(sleeper: subprocess.Popen[bytes]) -> None:
    assert Process(sleeper.pid, "some other time").ended()


def test_there_is_no_such_process() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert look(ended.pid) is None
    assert Process(ended.pid).ended()


def test_the_system_says_the_same_through_ps() -> None:
    seen = processes._ask_ps(os.getpid())
    assert seen is not None
    assert seen.parent == os.getppid()
    assert seen.state not in processes.DEAD
    assert processes._ask_ps(2**22 + 1) is None


def test_a_shelf_is_read_anew_only_where_it_has_changed(tmp_path: Path) -> None:
    shelf, other = Shelf(tmp_path), Shelf(tmp_path)
    other.put("a", {"pid": 1})
    other.put("b", {"pid": 2})
    first = shelf.all()
    other.put("b", {"pid": 3})
    other.take("c")
    again = shelf.all()
    assert again == {"a": {"pid": 1}, "b": {"pid": 3}}
    assert again["a"] is first["a"]
    other.take("a")
    assert shelf.all() == {"b": {"pid": 3}}
    assert shelf.get("a") is None
