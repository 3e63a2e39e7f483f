"""What every handler does, in every system: wait at the gate of its phase, sleep for as long as told, and count.

Standard library only: it runs in the environment of each system. A completion is one byte appended to a
file, which costs a microsecond and is right across threads, forks and languages.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(os.environ.get("BENCH_FOLDER", "."))
_phase = 0
_done = -1
_entering = threading.Lock()


def did(phase: int, milliseconds: float) -> None:
    """One job."""
    if phase != _phase:
        _enter(phase)
    if milliseconds:
        time.sleep(milliseconds / 1000)
    os.write(_done, b".")


async def adid(phase: int, milliseconds: float) -> None:
    """One job, in a coroutine."""
    if phase != _phase:
        _enter(phase)
    if milliseconds:
        await asyncio.sleep(milliseconds / 1000)
    os.write(_done, b".")


def picked_up(sent: float) -> None:
    """Write down how long a job waited: seconds since `sent`, on the machine's monotonic clock."""
    with (FOLDER / "latencies").open("a") as file:
        file.write(f"{time.monotonic() - sent:.6f}\n")


def _enter(phase: int) -> None:
    """Say that this process has arrived, and wait until the phase's gate is open; other threads wait with it."""
    with _entering:
        if phase != _phase:
            _enter_first(phase)


def _enter_first(phase: int) -> None:
    global _phase, _done
    if _done >= 0:
        os.close(_done)
    _done = os.open(FOLDER / f"done-{phase}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with (FOLDER / f"arrived-{phase}").open("ab") as file:
        file.write(b".")
    while not (FOLDER / f"gate-{phase}").exists():
        time.sleep(0.002)
    _phase = phase


def entering(enqueue: Callable[[int, list[tuple[int, float]]], None], pick: Callable[[float], None]) -> None:
    """The enqueue side of a system: orders come as lines of JSON, answers go out as such.

    An order is {"phase": n, "jobs": [[group, milliseconds], ...]} or {"pick": true}.
    """
    for line in sys.stdin:
        order = json.loads(line)
        begun = time.monotonic()
        if "jobs" in order:
            enqueue(order["phase"], [(group, milliseconds) for group, milliseconds in order["jobs"]])
        else:
            pick(time.monotonic())
        sys.stdout.write(json.dumps({"seconds": time.monotonic() - begun}) + "\n")
        sys.stdout.flush()
