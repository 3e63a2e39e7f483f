"""Celery's side: the consumer task, and what a worker does beside it."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from typing import Any

from celery import signals

from groupjobs import bell, conf

_identity: list[str] = []
_stopping: list[bool] = []


def install(app: Any) -> None:
    """Give a Celery app the tasks and the worker side of groupjobs. Reads no setting."""
    bell.use(app)

    @app.task(name=bell.CONSUME, acks_late=False, ignore_result=True, serializer="json", time_limit=10**7, soft_time_limit=10**7)
    def consume(queue: str) -> None:
        from groupjobs import consumer

        consumer.serve(queue, _identity[0], lambda: bool(_stopping))

    @app.task(name=bell.SWEEP, acks_late=False, ignore_result=True, serializer="json", time_limit=10**7, soft_time_limit=10**7)
    def sweep(queue: str, kind: str) -> None:
        from groupjobs import recovery

        recovery.sweep(queue, kind)

    signals.worker_init.connect(_born, weak=False)
    signals.worker_ready.connect(_ready, weak=False)
    signals.worker_shutting_down.connect(_stop, weak=False)


def _born(**_: Any) -> None:
    _identity[:] = [f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"]


def _stop(**_: Any) -> None:
    _stopping.append(True)


def _ready(sender: Any, **_: Any) -> None:
    slots = sender.controller.pool.limit or 1
    threading.Thread(target=_tick, args=(slots,), daemon=True).start()


def _tick(slots: int) -> None:
    from groupjobs.store import store_for

    asked = 0.0
    while True:
        for queue in conf.current().queues:
            try:
                store_for(queue, "beat").beat(_identity[0], slots, {})
                reply = store_for(queue, "beat").tick(_identity[0], slots)
                if reply.bells:
                    bell.ring(queue, reply.bells)
                if reply.state == "rebuild":
                    bell.sweep(queue, "rebuild")
                elif time.monotonic() - asked > 5:
                    asked = time.monotonic()
                    bell.sweep(queue, "quick")
                    bell.sweep(queue, "full")
            except Exception as error:
                print("tick", error)
        time.sleep(1)
