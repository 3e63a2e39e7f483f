"""A worker's home: a private folder in which its processes and its watchdog tell each other what they do.

Files are the truth, so a watchdog that starts anew finds all of it; a datagram only says "look".
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import mmap
import os
import secrets
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Final, NotRequired, Self, TypedDict

from groupjobs.watchdog.shelf import Shelf

LONGEST_PATH: Final = 100  # of a socket; the system's limit is 108 on Linux, 104 on macOS
LEAVING, FINISHED = 0, 1  # the bytes of `flags`


class Execution(TypedDict):
    """One execution of the consumer task; with a limit, the run that may last until then (monotonic seconds)."""

    queue: str
    worker: str
    pid: int
    run: NotRequired[int]
    fence: NotRequired[int]
    until: NotRequired[float]
    over: NotRequired[bool]  # it has ended later than that
    struck: NotRequired[bool]  # its watchdog has killed it


class Killed(TypedDict):
    """An execution as it was when its watchdog set out to kill it; `start` tells its process from a later one.

    `over`: because `run` has lasted longer than its limit.
    """

    queue: str
    pid: int
    start: str
    run: int
    fence: int
    over: bool


class Child(TypedDict):
    """A process of the pool and when it started, in the system's own words."""

    pid: int
    start: str


def incarnation(main: int) -> str:
    """A new identity of the worker with this main process: host:pid:random."""
    return f"{socket.gethostname()}:{main}:{secrets.token_hex(6)}"


class Home:
    """`queues` served, `executions`, `children` and `killed` ones of a worker, and two flags that only ever rise."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.queues = Shelf(folder / "queues")
        self.executions = Shelf(folder / "executions")
        self.children = Shelf(folder / "children")
        self.killed = Shelf(folder / "killed")
        self._flags = _mapped(folder / "flags")
        # What cleans temporary folders leaves a folder alone while somebody locks it.
        self._lock = os.open(folder, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        self._mail = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._mail.setblocking(False)

    @classmethod
    def make(cls) -> Self:
        """A new home in the system's temporary folder, open to this user only."""
        folder = Path(tempfile.mkdtemp(prefix="groupjobs-"))
        if len(str(folder / "watchdog.sock")) > LONGEST_PATH:
            folder.rmdir()
            folder = Path(tempfile.mkdtemp(prefix="groupjobs-", dir="/tmp"))
        for name in ("queues", "executions", "children", "killed"):
            (folder / name).mkdir()
        (folder / "flags").write_bytes(b"\0\0")
        return cls(folder)

    def worker_of(self, queue: str) -> str | None:
        """The incarnation under which this worker serves a queue; None when it does not."""
        record = self.queues.get(_name(queue))
        return record["worker"] if record else None

    def serve(self, queue: str, worker: str) -> None:
        """From now on the queue is served under this incarnation."""
        self.queues.put(_name(queue), {"queue": queue, "worker": worker})

    def served(self) -> dict[str, str]:
        """Queue -> incarnation."""
        return {record["queue"]: record["worker"] for record in self.queues.all().values()}

    @property
    def leaving(self) -> bool:
        """Whether the worker has begun to shut down. Costs no system call."""
        return self._flags[LEAVING] == 1

    @property
    def finished(self) -> bool:
        """Whether the worker has ended in order: nothing of it runs any more."""
        return self._flags[FINISHED] == 1

    def leave(self) -> None:
        """The worker shuts down. Takes no lock and does not block: may be called by a signal handler."""
        self._flags[LEAVING] = 1
        self.wake()

    def finish(self) -> None:
        """Nothing of the worker runs any more."""
        self._flags[FINISHED] = 1
        self.leave()

    def wake(self) -> None:
        """Ask the watchdog to look at once. It looks by itself before each beat."""
        with contextlib.suppress(OSError):
            self._mail.sendto(b"1", str(self.folder / "watchdog.sock"))

    def remove(self) -> None:
        """Take the folder away. May be called twice."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Mailbox:
    """The watchdog's end of the datagrams."""

    def __init__(self, home: Home) -> None:
        path = home.folder / "watchdog.sock"
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(path))

    def fileno(self) -> int:
        """For select and poll."""
        return self._socket.fileno()

    def empty(self) -> None:
        """Read what has come."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._socket.recv(16)


def _mapped(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 2)


def _name(queue: str) -> str:
    return hashlib.sha256(queue.encode()).hexdigest()[:16]
