"""Ring the bell: the only sender of Celery messages. A message names a queue and no run, so it may be lost.

Nothing here blocks or raises: a daemon thread of this process owns a connection of its own with short
timeouts. A broker that is down or silent costs its callers nothing.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue as queues
import threading
import time
from typing import Any, Final

from groupjobs import conf
from groupjobs.outage import Outage

logger = logging.getLogger("groupjobs")

CONSUME: Final = "groupjobs.consume"
SWEEP: Final = "groupjobs.sweep"
MOST_WAITING: Final = 1000
FAREWELL: Final = 0.5  # seconds that the end of the interpreter waits for what is queued

Message = tuple[str, tuple[str, ...], str, int]  # task, arguments, Celery queue, how often

_installed: list[Any] = []
outage = Outage("The broker")


def use(app: Any) -> None:
    """Ring through this Celery app, unless the settings name another."""
    _installed[:] = [app]


def app() -> Any:
    """The Celery app to send with: the settings' one, the installed one, or Celery's current one."""
    path = conf.current().celery_app
    if path:
        from django.utils.module_loading import import_string

        return import_string(path)
    if _installed:
        return _installed[0]
    from celery import current_app

    return current_app


def ring(queue: str, count: int = 1) -> None:
    """Ask the fleet for `count` consumers of a queue."""
    _send(CONSUME, (queue,), _celery_queue(queue), count)


def ring_self(queue: str, direct: str) -> None:
    """Ask for one consumer through a worker's own Celery queue, which no other worker holds back."""
    _send(CONSUME, (queue,), direct, 1)


def sweep(queue: str, kind: str) -> None:
    """Ask the fleet for one sweep of a queue."""
    _send(SWEEP, (queue, kind), _celery_queue(queue), 1)


def _celery_queue(queue: str) -> str:
    known = conf.current().queues.get(queue)
    return (known.celery_queue if known else None) or ""


def _send(task: str, arguments: tuple[str, ...], target: str, count: int) -> None:
    if outage.skip():
        return
    try:
        _ringer().put((task, arguments, target, count))
    except Exception as error:  # a bell may be lost, its caller must not fail
        outage.failed(error, "a tick of any worker rings instead")


class Ringer:
    """The thread of one process that sends."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.waiting: queues.Queue[Message] = queues.Queue(MOST_WAITING)
        self.thread = threading.Thread(target=self._run, name="groupjobs-bell", daemon=True)
        self.thread.start()

    def put(self, message: Message) -> None:
        """Queue a message; a full queue drops it."""
        try:
            self.waiting.put_nowait(message)
        except queues.Full:
            logger.debug("A bell is dropped: a thousand wait already.")

    def finish(self) -> None:
        """Wait a little for what is queued."""
        until = time.monotonic() + FAREWELL
        with self.waiting.all_tasks_done:
            while self.waiting.unfinished_tasks and (left := until - time.monotonic()) > 0:
                self.waiting.all_tasks_done.wait(left)

    def _run(self) -> None:
        connection = None
        while True:
            message = self.waiting.get()
            try:
                if not outage.skip():
                    connection = connection or _connection()
                    _publish(connection, message)
                    outage.ended()
            except Exception as error:
                outage.failed(error, "no bell is sent for a while; a tick of any worker rings when it is back")
                _close(connection)
                connection = None
            finally:
                self.waiting.task_done()


_ringers: list[Ringer] = []
_lock = threading.Lock()


def _ringer() -> Ringer:
    """This process's thread; a fork makes a new one."""
    if not _ringers or _ringers[0].pid != os.getpid():
        with _lock:
            if not _ringers or _ringers[0].pid != os.getpid():
                _ringers[:] = [Ringer()]
    return _ringers[0]


def _connection() -> Any:
    celery = app()
    connection = celery.connection_for_write(connect_timeout=1.0)
    short = {"socket_timeout": 1.0, "socket_connect_timeout": 1.0, "max_retries": 0, "read_timeout": 1.0}
    short["write_timeout"] = 1.0
    connection.transport_options = {**(connection.transport_options or {}), **short}
    return connection


def _publish(connection: Any, message: Message) -> None:
    task, arguments, target, count = message
    celery = app()
    if celery.conf.task_always_eager:
        return
    options = {"queue": target or celery.conf.task_default_queue, "serializer": "json", "ignore_result": True}
    with celery.amqp.Producer(connection, auto_declare=False) as producer:
        for _ in range(count):
            celery.send_task(task, args=list(arguments), producer=producer, retry=False, **options)


def _close(connection: Any) -> None:
    try:
        if connection is not None:
            connection.close()
    except Exception:
        logger.debug("Closing a broken connection to the broker failed.", exc_info=True)


@atexit.register
def _finish() -> None:
    if _ringers and _ringers[0].pid == os.getpid():
        _ringers[0].finish()
