"""Temporary folders that go with the process that made them, however it ends."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path

LONGEST_SOCKET_PATH = 100  # the system's limit is 108 on Linux, 104 on macOS
# Its input ends with this process. The servers in the folder end then, too, which takes them a moment.
REMOVER = 'read -r _; sleep 0.5; rm -rf -- "$1"'

_removers: dict[Path, subprocess.Popen[bytes]] = {}


def short_folder(prefix: str) -> Path:
    """A new private folder directly under the system's temporary folder, short enough for a socket in it.

    `remove` it; where this process is killed before that, a small shell does.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    if len(str(folder)) > LONGEST_SOCKET_PATH - len("/valkey.sock"):
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    with contextlib.suppress(OSError):
        _removers[folder] = subprocess.Popen(
            ["/bin/sh", "-c", REMOVER, "remover", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return folder


def remove(folder: Path) -> None:
    """Remove it with all that is in it. May be called twice."""
    remover = _removers.pop(folder, None)
    if remover is not None:
        with remover:
            remover.kill()
    shutil.rmtree(folder, ignore_errors=True)
