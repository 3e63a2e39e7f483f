"""Immediate mode, and a mixin for test cases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import TestCase

from django.db import transaction

from groupjobs import ledger
from groupjobs.compat import task_enqueued
from groupjobs.testing.draining import drain
from groupjobs.testing.memory import in_memory


@contextmanager
def immediate() -> Iterator[None]:
    """Inside, what is enqueued runs as soon as its transaction commits, in this thread.

    Inside a `TestCase`, whose transaction never commits, it runs at once, or after the outermost `atomic`
    block of yours when its `on_commit` callbacks are captured with `execute=True`.
    """

    def enqueued(**_: Any) -> None:
        blocks = ledger.connection().atomic_blocks
        if blocks and all(getattr(block, "_from_testcase", False) for block in blocks):
            drain()
        else:
            transaction.on_commit(lambda: drain() and None, using=ledger.alias())

    with in_memory():
        task_enqueued.connect(enqueued, weak=False)
        try:
            yield
        finally:
            task_enqueued.disconnect(enqueued)


class JobsMixin(TestCase):
    """For a `TestCase`: no Redis and no broker during each test. Call `groupjobs.testing.drain()` in it."""

    def setUp(self) -> None:
        """Enter `in_memory` for this test."""
        self.enterContext(in_memory())
        super().setUp()
