"""Hear a shutdown before Celery acts on it.

In a cold shutdown Celery's own handler first cancels what the children run and only then sends
`worker_shutting_down`: a handler that it ends by SystemExit would look like one that failed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any, Final

SHUTDOWNS: Final = ("SIGTERM", "SIGQUIT", "SIGINT", "SIGHUP")


def hear_first(leave: Callable[[], None]) -> None:
    """Call `leave` ahead of each handler of a shutdown that is installed in this process.

    Nothing happens outside of the main thread, where an embedded worker gets no signals either.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for name in SHUTDOWNS:
        handler = signal.getsignal(getattr(signal, name))
        if callable(handler) and handler is not signal.default_int_handler:
            signal.signal(getattr(signal, name), _before(handler, leave))


def _before(handler: Callable[..., Any], leave: Callable[[], None]) -> Callable[..., Any]:
    main = os.getpid()

    def heard(*arguments: Any) -> Any:
        if os.getpid() == main:  # not in a child that inherited it
            leave()
        return handler(*arguments)

    return heard
