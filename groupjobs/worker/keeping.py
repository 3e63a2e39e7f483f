"""Keep a thread's connection from one execution of a consumer to the next, as CONN_MAX_AGE allows.

Celery closes every connection that it finds around each of its tasks, whatever CONN_MAX_AGE says. To connect
anew costs PostgreSQL a process, and a run that is alone more time than all its queries.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from kombu.utils.compat import detect_environment

from groupjobs.ledger import alias, connection


class _Kept(threading.local):
    wrapper: BaseDatabaseWrapper | None = None
    process = 0


_kept = _Kept()


@contextmanager
def kept_connection() -> Iterator[None]:
    """Inside, this thread has the connection that it had the last time; one that is too old or broken is closed."""
    _take_out()
    try:
        yield
    finally:
        _put_aside()


def _take_out() -> None:
    wrapper, _kept.wrapper = _kept.wrapper, None
    if wrapper is None or _kept.process != os.getpid() or wrapper.alias != alias():
        return
    if connection().connection is None:
        connections[alias()] = wrapper
    wrapper.close_if_unusable_or_obsolete()


def _put_aside() -> None:
    wrapper = connection()
    if wrapper.connection is None or wrapper.in_atomic_block or detect_environment() != "default":
        return  # a greenlet's end would not close it
    wrapper.close_if_unusable_or_obsolete()
    if wrapper.connection is not None:
        _kept.wrapper, _kept.process = wrapper, os.getpid()
        del connections[alias()]
