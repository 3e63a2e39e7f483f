"""Jobs of mixed duration that fail, are killed, write into the database, and tell the log of it all.

Arguments: `group`; `token`, which names one enqueue; `ms`, how long the handler takes; `fails`, how many of
its first attempts fail.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from django.db import DatabaseError, InterfaceError

from groupjobs import job
from tests.chaos.app.models import Effect
from tests.chaos.history import DOOMED, FAIL, GONE, OK
from tests.chaos.lines import Log

log = Log(Path(os.environ.get("CHAOS_LOG") or os.devnull))
SLICE: Final = 0.05  # seconds between two signs of life


class Flaky(Exception):
    """This attempt was meant to fail."""


class Doomed(Exception):
    """This run was meant to end as FAILED."""


RETRIED: Final = (Flaky, DatabaseError, InterfaceError)
# Faults of the database cost attempts and kills cost losses, so there are plenty of both.
PLENTY: Final[Any] = {"group": "{group}", "max_attempts": 1000, "max_losses": 1000, "backoff": [0.02, 0.05, 0.1, 0.3]}


def spend(name: tuple[int, int], seconds: float) -> None:
    """Take so long, with signs of life."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, SLICE))
        if left > SLICE:
            log.write("T", *name)


def hold_interpreter(_: tuple[int, int], seconds: float) -> None:
    """Take so long, and let no other thread of the process run."""
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


def work(
    context: Any, token: str, ms: float, fails: int, doomed: bool = False, spend: Callable[..., None] = spend
) -> str:
    """What every handler does."""
    name, outcome = (context.run_id, context.fence), GONE
    log.write("B", os.getppid(), *name, token)
    try:
        spend(name, ms / 1000)
        if doomed:
            outcome = DOOMED
            raise Doomed
        outcome = FAIL
        if context.attempt <= fails:
            raise Flaky
        Effect(run=context.run_id, fence=context.fence).save(force_insert=True)
        outcome = OK
    except BaseException as error:
        outcome = outcome if isinstance(error, Exception) else GONE
        raise
    finally:
        log.write("E", *name, outcome)
    return token


@job(takes_context=True, retry_on=RETRIED, **PLENTY)
def plain(context: Any, group: str, token: str, ms: float = 0, fails: int = 0) -> str:
    return work(context, token, ms, fails)


@job(takes_context=True, retry_on=RETRIED, atomic=True, **PLENTY)
def atomic(context: Any, group: str, token: str, ms: float = 0, fails: int = 0) -> str:
    return work(context, token, ms, fails)


@job(takes_context=True, retry_on=RETRIED, on_retry="yield", **PLENTY)
def yielding(context: Any, group: str, token: str, ms: float = 0, fails: int = 0) -> str:
    return work(context, token, ms, fails)


@job(takes_context=True, retry_on=RETRIED, **PLENTY)
def greedy(context: Any, group: str, token: str, ms: float = 0, fails: int = 0) -> str:
    return work(context, token, ms, fails, spend=hold_interpreter)


@job(takes_context=True, retry_on=RETRIED, atomic=True, **PLENTY)
def doomed(context: Any, group: str, token: str, ms: float = 0, fails: int = 0) -> str:
    return work(context, token, ms, fails, doomed=True)


@job(takes_context=True, group="{group}", max_losses=2)
def poison(context: Any, group: str, token: str, ms: float = 0, fails: int = 0) -> None:
    log.write("B", os.getppid(), context.run_id, context.fence, token)
    log.write("K", os.getppid())
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(10)
