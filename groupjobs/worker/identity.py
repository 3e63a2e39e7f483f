"""Who this worker is, and whether it shuts down: asked by the main process, its children and its threads."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from groupjobs.watchdog.home import Home, incarnation

HOME = "GROUPJOBS_WORKER_HOME"  # names the home for children that are not forked

_home: Home | None = None


def home() -> Home | None:
    """The home of the worker that this process belongs to; None outside of a worker."""
    return _home


def settle(home: Home) -> None:
    """This process is the main process of a worker with this home; its children inherit it."""
    global _home
    _home = home
    os.environ[HOME] = str(home.folder)


def adopt() -> Home | None:
    """Settle in the home that the environment names: for a child of the pool that was not forked."""
    global _home
    folder = Path(os.environ.get(HOME, "."))
    if (folder / "flags").exists():
        _home = Home(folder)
    return _home


def depart() -> None:
    """The worker of this process has ended."""
    global _home
    _home = None
    os.environ.pop(HOME, None)


def current(queue: str) -> str:
    """The incarnation "host:pid:random" under which this worker serves a queue now.

    It changes when the old one was judged dead. Outside of a worker: one of this process's own.
    """
    return (_home.worker_of(queue) if _home else None) or _unwatched(os.getpid())


@cache
def _unwatched(pid: int) -> str:
    return incarnation(pid)


def stopping() -> bool:
    """Whether this worker shuts down. Costs no system call."""
    return _home is not None and _home.leaving
