"""Processes that kill themselves with SIGKILL at a named point, as the kernel would."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from django.db import connections

from tests.servers.waiting import wait_until

DEADLINE = 20  # seconds


def dies(work: Callable[[], Any], when: str, point: str, number: int = 1) -> None:
    """Do this work in a process that dies "before" or "after" its call of `point`, a dotted name, the n-th one.

    AssertionError when the process ends in any other way.
    """
    assert not survives(work, partial(_mine, when, point, number)), f"it did not come to {point}"


def survives(work: Callable[[], Any], prepare: Callable[[], None] = lambda: None) -> bool:
    """Do this work in a process of its own: whether that ended by itself; False when SIGKILL ended it.

    AssertionError when it raised.
    """
    connections.close_all()  # the child must not share them
    pid = os.fork()
    if pid == 0:
        _live(work, prepare)
    status: list[int] = []

    def ended() -> bool:
        found, how = os.waitpid(pid, os.WNOHANG)
        status.append(how)
        return found == pid

    wait_until(ended, DEADLINE + 5, "the process has ended")
    code = os.waitstatus_to_exitcode(status[-1])
    assert code in (0, -signal.SIGKILL), f"it ended with {code}"
    return code == 0


def _live(work: Callable[[], Any], prepare: Callable[[], None]) -> NoReturn:
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(DEADLINE)
        prepare()
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(3)


def _mine(when: str, point: str, number: int) -> None:
    path, _, name = point.rpartition(".")
    owner = _owner(path)
    real, left = getattr(owner, name), [number]

    def mined(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and when == "before":
            _die()
        answer = real(*args, **kwargs)
        if left[0] == 0:
            _die()
        return answer

    setattr(owner, name, mined)


def _owner(path: str) -> Any:
    """The module, or the class in a module, of this dotted name."""
    try:
        return import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(import_module(module), name)


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")
