"""A log that every process of a test appends to, in a file named by the environment.

One write per line, so that lines of several processes do not mix and a killed process has written all
that it said.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Final

VARIABLE: Final = "GROUPJOBS_JOURNAL"
PATIENCE: Final = 30.0  # seconds that a handler waits at a gate


def say(*words: Any) -> None:
    """Append these words and this process's id, if a test listens."""
    path = os.environ.get(VARIABLE)
    if path:
        with Path(path).open("ab", buffering=0) as file:
            file.write(json.dumps([*words, os.getpid()]).encode() + b"\n")


def said(path: Path) -> list[list[Any]]:
    """Everything that was said, without the process ids."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)[:-1] for line in lines]


def wait_at(gate: str) -> None:
    """Until a file of this name exists; TimeoutError after half a minute."""
    deadline = time.monotonic() + PATIENCE
    while not Path(gate).exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody opened {gate}")
        time.sleep(0.005)
