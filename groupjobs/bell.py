"""Ring the bell: the only sender of Celery messages. A message names a queue and no run, so it may be lost.

Nothing here blocks or raises: a daemon thread of this process owns a connection of its own with short
timeouts. A broker that is down or silent costs its callers nothing.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Mapping
from typing import Any, Final

from groupjobs import conf
from groupjobs.outage import PAUSE, Outage

logger = logging.getLogger("groupjobs")

CONSUME: Final = "groupjobs.consume"
SWEEP: Final = "groupjobs.sweep"
MOST: Final = 100  # messages of a kind that wait; further ones say nothing new
IDLE: Final = 10.0  # seconds without a message after which the connection is closed
SOONER: Final = PAUSE - 2.0  # seconds by which a worker's tick tries a broker that failed before others do
FAREWELL: Final = 0.5  # seconds that the end of the interpreter waits for what is queued
SILENCE: Final = 1.0  # seconds that a broker may take to answer
TRANSPORT: Final = {
    "redis": {"socket_timeout": SILENCE, "socket_connect_timeout": SILENCE, "retry_on_timeout": False},
    "amqp": {"read_timeout": SILENCE, "write_timeout": SILENCE},
}

PASSED: Final = "groupjobs_passed"  # header: how many busy workers have had this bell and passed it on
HOPS: Final = 2  # so many at most, or bells would go round for as long as workers are busy with them

# Task, arguments, the worker's own Celery queue or '', how often it was passed on.
Message = tuple[str, tuple[str, ...], str, int]

_installed: list[Any] = []
_muted = False


def use(app: Any) -> None:
    """Ring through this Celery app, unless the settings name another."""
    _installed[:] = [app]


def app() -> Any:
    """The Celery app to send with: the settings' one, the installed one, or Celery's current one."""
    path = conf.current().celery_app
    if path:
        from django.utils.module_loading import import_string

        return import_string(path.replace(":", "."))
    if _installed:
        return _installed[0]
    from celery import current_app

    return current_app


def ring(queue: str, count: int = 1) -> None:
    """Ask the fleet for `count` consumers of a queue."""
    _send((CONSUME, (queue,), "", 0), count)


def pass_on(queue: str, headers: Mapping[str, Any]) -> None:
    """Ring again with a bell that came here and finds no free slot; `headers` are those of its message."""
    hops = headers.get(PASSED)
    hops = hops if isinstance(hops, int) else 0
    if hops < HOPS:
        _send((CONSUME, (queue,), "", hops + 1), 1)


def ring_self(queue: str, direct: str) -> None:
    """Ask for one consumer through a worker's own Celery queue, which no other worker holds back.

    With '' the bell goes where the queue's others go. This is what finds out that the broker is back.
    """
    _send((CONSUME, (queue,), direct, 0), 1, SOONER)


def unheard() -> bool:
    """Whether the broker is known to be down or silent, so that no bell of this process is heard."""
    return _ringer().outage.on


def sweep(queue: str, kind: str, direct: str = "") -> None:
    """Ask for one sweep of a queue: of the fleet, or of the worker with this Celery queue of its own."""
    _send((SWEEP, (queue, kind), direct, 0), 1)


def mute(quiet: bool) -> None:
    """Whether this process rings no bell at all. For tests."""
    global _muted
    _muted = quiet


def _send(message: Message, count: int, sooner: float = 0.0) -> None:
    if _muted:
        return
    try:
        _ringer().put(message, count, sooner)
    except Exception:  # a bell may be lost, its caller must not fail
        logger.exception("No bell is rung: the thread that sends it cannot start.")


class Ringer:
    """The thread of one process that sends, and what waits for it. Messages of one kind are counted."""

    def __init__(self) -> None:
        self.outage = Outage("The broker")
        self._waiting: dict[Message, int] = {}
        self._busy = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._connection: Any = None
        self._producer: Any = None

    def put(self, message: Message, count: int, sooner: float = 0.0) -> None:
        """Queue a message; dropped while the broker is known to be down."""
        if count <= 0 or self.outage.skip(sooner):
            return
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="groupjobs-bell", daemon=True)
                self._thread.start()
            self._waiting[message] = min(self._waiting.get(message, 0) + count, MOST)
            self._changed.notify_all()

    def finish(self) -> None:
        """Wait a little for what is queued."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._busy), FAREWELL)

    def _run(self) -> None:
        while True:
            waiting = self._next()
            try:
                if not waiting:
                    self._close()
                elif not self.outage.skip(SOONER):
                    self._publish(waiting)
            except Exception as error:
                self.outage.failed(error, "no bell is rung for a while; a tick of any worker rings when it is back")
                self._close()

    def _next(self) -> dict[Message, int]:
        """What waits; empty after a while without any."""
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting, IDLE if self._producer else None)
            waiting, self._waiting = self._waiting, {}
            self._busy = bool(waiting)
            return waiting

    def _publish(self, waiting: dict[Message, int]) -> None:
        celery = app()
        if celery.conf.task_always_eager:
            return
        if self._producer is None:
            self._connection = _connection(celery)
            self._connection.ensure_connection(max_retries=0, timeout=SILENCE)
            self._producer = celery.amqp.Producer(self._connection, auto_declare=False)
        for message, count in waiting.items():
            for _ in range(count):
                self._send_one(celery, *message)
        self.outage.ended()

    def _send_one(self, celery: Any, task: str, arguments: tuple[str, ...], direct: str, passed: int) -> None:
        options: dict[str, Any] = {"queue": celery_queue(arguments[0])}
        if direct:
            from kombu import Queue

            # Its worker has declared it; if that is gone, so is the message.
            options = {"queue": Queue(direct, routing_key=direct), "declare": ()}
        celery.send_task(
            task,
            args=list(arguments),
            producer=self._producer,
            retry=False,
            serializer="json",
            ignore_result=True,
            add_to_parent=False,
            headers={PASSED: passed} if passed else None,
            **options,
        )

    def _close(self) -> None:
        connection, self._connection, self._producer = self._connection, None, None
        try:
            if connection is not None:
                connection.release()
        except Exception:
            logger.debug("Closing a broken connection to the broker failed.", exc_info=True)


def celery_queue(queue: str) -> str:
    """The Celery queue of a queue's bells: that of the settings, or Celery's default one."""
    known = conf.current().queues.get(queue)
    return str((known.celery_queue if known else None) or app().conf.task_default_queue)


def _connection(celery: Any) -> Any:
    connection = celery.connection_for_write(connect_timeout=SILENCE)
    short = TRANSPORT.get(connection.transport.driver_type, {})
    connection.transport_options = {**(connection.transport_options or {}), **short}
    return connection


_ringers: dict[int, Ringer] = {}  # by process: a fork makes a new one


def _ringer() -> Ringer:
    pid = os.getpid()
    return _ringers.get(pid) or _ringers.setdefault(pid, Ringer())


@atexit.register
def _finish() -> None:
    if os.getpid() in _ringers:
        _ringers[os.getpid()].finish()
