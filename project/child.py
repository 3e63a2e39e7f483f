"""Processes that end with the process that started them."""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None

_orders: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
_starter: threading.Thread | None = None
_starter_pid = 0
_lock = threading.Lock()


def start(
    command: Sequence[str | Path],
    *,
    log: Path,
    end: signal.Signals = signal.SIGKILL,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user: str | None = None,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, with its output appended to `log`.

    Linux sends it `end` when this process ends, however that comes. Elsewhere the caller has to stop it.
    `user`: a user of this system to run as, with no group but that user's own.
    """
    with log.open("ab") as output:
        launch = lambda: subprocess.Popen(  # noqa: E731
            [str(part) for part in command],
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=None if env is None else dict(env),
            cwd=folder,
            start_new_session=True,
            preexec_fn=_ends_with(os.getpid(), end),  # noqa: PLW1509
            **_as_user(user),
        )
        return _on_starter(launch)


def tail(log: Path, lines: int = 30) -> str:
    """The last lines of a log; empty when there is none."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def _ends_with(parent: int, end: signal.Signals) -> Callable[[], None] | None:
    if LIBC is None:
        return None
    prctl = LIBC.prctl

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, int(end), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def _as_user(user: str | None) -> dict[str, Any]:
    if user is None:
        return {}
    import pwd

    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _on_starter(launch: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Linux sends the signal when the *thread* that forked ends, so one thread, which never ends, forks."""
    global _starter, _starter_pid
    with _lock:
        if _starter is None or _starter_pid != os.getpid():
            _starter_pid = os.getpid()
            _starter = threading.Thread(target=_work, name="child-starter", daemon=True)
            _starter.start()
    answer: Future[subprocess.Popen[bytes]] = Future()
    _orders.put((launch, answer))
    return answer.result()


def _work() -> None:
    while True:
        launch, answer = _orders.get()
        try:
            answer.set_result(launch())
        except BaseException as error:
            answer.set_exception(error)
