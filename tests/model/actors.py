"""Threads that stop before and after each of their talks with a server, and go on when it is their turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from django.db import connections

from groupjobs.consumer import serving
from groupjobs.consumer.patience import Patience
from groupjobs.store import Store

T = TypeVar("T")
Sent = list[tuple[Store, str, tuple[Any, ...]]]
PATIENCE = 20.0  # real seconds for one turn


class Killed(BaseException):
    """The process of this actor is no more: nothing that it would do still happens."""


class Actor(threading.Thread):
    """Work of one process, taken turn by turn."""

    def __init__(self, work: Callable[[], object], worker: str = "") -> None:
        super().__init__(daemon=True)
        self.work = work
        self.worker = worker
        self.killed = self.ended = False
        self.resend = False  # the next script call's reply is lost, and the call sent again
        self.error: BaseException | None = None
        self.part: Callable[[Actor, Any], None] | None = None
        self._go, self._parked = threading.Semaphore(0), threading.Semaphore(0)
        self.start()
        self._wait()

    def run(self) -> None:
        """Wait for the first turn; then work."""
        try:
            self.stop()
            self.work()
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()
            self.ended = True
            self._parked.release()

    def stop(self) -> None:
        """In its own thread: until it is its turn again."""
        if not self.killed:
            self._parked.release()
            self._go.acquire()
        if self.killed:
            raise Killed

    def turn(self) -> None:
        """Let it go on to its next stop."""
        self._go.release()
        self._wait()

    def kill(self) -> None:
        """It stops where it is."""
        self.killed = True
        if not self.ended and threading.current_thread() is not self:
            self.turn()

    def handle(self, context: Any) -> None:
        """A handler runs in this thread."""
        if self.part is not None:
            self.part(self, context)

    def _wait(self) -> None:
        assert self._parked.acquire(timeout=PATIENCE), "an actor waits for another, which waits for its turn"
        if self.error is not None:
            raise self.error


def here() -> Actor | None:
    """The actor in whose thread this is called."""
    current = threading.current_thread()
    return current if isinstance(current, Actor) else None


class NoGuard:
    """A walk decides itself when a lease is kept."""

    def __init__(self, *_: Any) -> None:
        pass

    def start(self) -> None:
        """Nothing."""

    def finish(self) -> None:
        """Nothing."""


@contextmanager
def stops(sent: Sent) -> Iterator[None]:
    """Actors stop around script calls and statements of a consumer; their steps are noted in `sent`."""
    call, database = Store.call, Patience.database

    def stopping_call(self: Store, verb: str, *args: Any) -> Any:
        actor = here()
        if actor is None:
            return call(self, verb, *args)
        actor.stop()
        if verb == "step":
            sent.append((self, verb, args))
        again, actor.resend = actor.resend, False
        answers = [call(self, verb, *args) for _ in range(1 + again)]
        actor.stop()
        return answers[-1]

    def stopping_statement(self: Patience, statement: Callable[[], T]) -> T:
        actor = here()
        if actor is None:
            return database(self, statement)
        actor.stop()
        answer = database(self, statement)
        actor.stop()
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "call", stopping_call)
        patch.setattr(Patience, "database", stopping_statement)
        patch.setattr(serving, "Guard", NoGuard)
        yield
