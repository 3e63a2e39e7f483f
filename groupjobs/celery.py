"""Celery's side: the tasks `groupjobs.consume`, `.sweep` and `.enqueue`, and what a worker does beside its pool."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from celery import bootsteps, signals
from kombu import Queue

from groupjobs import bell
from groupjobs.watchdog.processes import look
from groupjobs.worker import identity
from groupjobs.worker.crew import Crew

logger = logging.getLogger("groupjobs")

YEARS: Final = 10**8  # seconds: a limit of Celery's own would kill a consumer in the middle of a run
PINNED: Final = {
    "acks_late": False,
    "ignore_result": True,
    "serializer": "json",
    "time_limit": YEARS,
    "soft_time_limit": YEARS,
    "expires": None,
    "max_retries": 0,
    "rate_limit": 0,
    "track_started": False,
    "shared": False,
}
ENQUEUE: Final = "groupjobs.enqueue"
# A tick is not lost with the process that has it, nor with a database that is away for some minutes.
TICK: Final = {"acks_late": True, "ignore_result": True, "serializer": "json", "shared": False, "max_retries": 20}
WITH_DIRECT_QUEUES: Final = ("redis", "amqp", "memory", "filesystem")

_installed: list[Any] = []
_crew: Crew | None = None


def install(app: Any) -> None:
    """Give a Celery app the tasks and the worker side of groupjobs; call it once, in the project's celery.py.

    Reads no setting: Celery may be configured afterwards.
    """
    if any(app is known for known in _installed):
        return
    _installed.append(app)
    bell.use(app)
    app.task(name=bell.CONSUME, **PINNED)(consume)
    app.task(name=bell.SWEEP, **PINNED)(sweep)
    app.task(name=ENQUEUE, **TICK, autoretry_for=(DatabaseAway,), retry_backoff=True)(enqueue)
    app.steps["worker"].add(Farewell)
    app.steps["consumer"].add(DirectQueue)
    if len(_installed) == 1:
        _listen()


def consume(queue: str) -> None:
    """Serve groups of a queue until none is ready."""
    from groupjobs import conf
    from groupjobs.consumer import serve
    from groupjobs.worker.executions import Executions
    from groupjobs.worker.keeping import kept_connection

    if queue not in conf.current().queues:
        logger.warning("A bell of the queue %r is not answered: GROUPJOBS['QUEUES'] has none in this worker.", queue)
        return
    worker = identity.current(queue)
    with kept_connection():
        serve(queue, worker, identity.stopping, Executions(queue, worker))


def sweep(queue: str, kind: str) -> None:
    """Recover a queue: "full", "quick" or "rebuild". While a server is away there is one line about it, no more."""
    from groupjobs.recovery.sweep import try_to_sweep

    try_to_sweep(queue, kind)


class DatabaseAway(Exception):
    """The database does not answer; the tick is tried again."""


def enqueue(
    job: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    group: str | None = None,
    dedup: str | None = None,
    once_in: float | None = None,
) -> None:
    """Enqueue a run of a job by its name, for celery beat: see `groupjobs.scheduling.enqueue`."""
    from groupjobs import ledger, scheduling

    try:
        scheduling.enqueue(job, args, kwargs, group, dedup, once_in)
    except ledger.CONNECTION_ERRORS as error:
        ledger.forget_connection()
        raise DatabaseAway(str(error)) from error


class Farewell(bootsteps.StartStopStep):
    """Notices the beginning of every kind of shutdown, also of one that no signal asked for."""

    def close(self, worker: Any) -> None:
        """Celery begins to stop the worker."""
        if (crew := _crew_of(worker.app)) is not None:
            crew.leave()


class DirectQueue(bootsteps.StartStopStep):
    """A Celery queue of this worker alone, in which it rings for itself; declared again at each reconnect.

    It has no binding, so nothing of it stays in the broker.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        """Consume from it besides the others."""
        crew = _crew_of(consumer.app)
        if crew is None or consumer.connection.transport.driver_type not in WITH_DIRECT_QUEUES:
            return
        name = f"groupjobs.{crew.worker.rpartition(':')[2]}"
        # Celery's loop, which starts last, consumes from it with the others.
        consumer.task_consumer.add_queue(Queue(name, routing_key=name, auto_delete=True))
        crew.direct = name


def _crew_of(app: Any) -> Crew | None:
    return _crew if _crew is not None and _crew.app is app and _crew.main == os.getpid() else None


def _listen() -> None:
    signals.worker_init.connect(_on_init, weak=False)
    signals.worker_ready.connect(_on_ready, weak=False)
    signals.worker_process_init.connect(_on_child, weak=False)
    signals.task_received.connect(_on_received, weak=False)
    signals.worker_shutting_down.connect(_on_shutting_down, weak=False)
    signals.worker_shutdown.connect(_on_shutdown, weak=False)


def _on_init(sender: Any, **_: Any) -> None:
    """Before the pool forks, so that its children know the worker's home."""
    global _crew
    if any(sender.app is known for known in _installed):
        _crew = Crew(sender)


def _on_ready(sender: Any, **_: Any) -> None:
    if (crew := _crew_of(sender.app)) is not None:
        crew.start(sender)


def _on_received(sender: Any, request: Any, **_: Any) -> None:
    """A message has come from the broker; in the main process."""
    if request.name == bell.CONSUME and (crew := _crew_of(sender.app)) is not None:
        crew.pass_on(request.args[0], request.request_dict or {})


def _on_child(**_: Any) -> None:
    """In a child of the pool. Celery itself has asked the system to kill it when the main process dies."""
    from groupjobs.worker.aftermath import settle_soon

    home = identity.home() or identity.adopt()
    if home is None:
        return
    seen = look(os.getpid())
    if seen is not None:
        home.children.put(str(os.getpid()), {"pid": os.getpid(), "start": seen.start})
        home.wake()
    settle_soon(home)


def _on_shutting_down(sender: Any, **_: Any) -> None:
    """Inside Celery's signal handler: no lock, nothing that blocks."""
    if _crew is not None and _crew.controller.hostname == sender:
        _crew.leave()


def _on_shutdown(sender: Any, **_: Any) -> None:
    if (crew := _crew_of(sender.app)) is not None:
        crew.finish()
