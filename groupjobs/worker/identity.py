"""Who this worker is, and whether it shuts down: asked by the main process, its children and its threads."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from groupjobs.watchdog.home import Home, incarnation

HOME = "GROUPJOBS_WORKER_HOME"  # names the home for children that are not forked
WORKER = "GROUPJOBS_WORKER"  # and its first incarnation

_home: Home | None = None
_first = ""


def home() -> Home | None:
    """The home of the worker that this process belongs to; None outside of a worker."""
    return _home


def settle(home: Home, worker: str) -> None:
    """This process is the main process of a worker with this home and incarnation; its children inherit them."""
    global _home, _first
    _home, _first = home, worker
    os.environ[HOME], os.environ[WORKER] = str(home.folder), worker


def adopt() -> Home | None:
    """Settle in the home that the environment names: for a child of the pool that was not forked."""
    global _home, _first
    folder = Path(os.environ.get(HOME, "."))
    if (folder / "flags").exists():
        _home, _first = Home(folder), os.environ.get(WORKER, "")
    return _home


def depart() -> None:
    """The worker of this process has ended."""
    global _home
    _home = None
    for name in (HOME, WORKER):
        os.environ.pop(name, None)


def current(queue: str) -> str:
    """The incarnation "host:pid:random" under which this worker serves a queue now.

    It changes when the old one was judged dead. Outside of a worker: one of this process's own, which nobody
    beats for. A bell may come before the watchdog was told of its queue: then it is the worker's first one.
    """
    return ((_home.worker_of(queue) or _first) if _home else "") or _unwatched(os.getpid())


@cache
def _unwatched(pid: int) -> str:
    return incarnation(pid)


def stopping() -> bool:
    """Whether this worker shuts down. Costs no system call."""
    return _home is not None and _home.leaving
