"""The context that a handler with `takes_context` receives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, TypeVar

from groupjobs.compat import TaskContext
from groupjobs.consumer.batch import Item
from groupjobs.errors import Cancel

T = TypeVar("T")

if TYPE_CHECKING:
    Base = TaskContext[..., Any]
else:
    Base = TaskContext  # generic for type checkers only, in the backport


class RunContext(Base):
    """What a handler may know of its run, and how it says how far it has come.

    `attempt` counts the tries begun in this life, from 1; `fence` is the number of the reservation
    and grows with each, so it can guard writes to other systems.
    """

    def __init__(self, item: Item) -> None:
        object.__setattr__(self, "_item", item)

    _item: Item

    @property
    def task_result(self) -> Any:  # type: ignore[override]
        """The run as a django.tasks result, read from its row when asked for."""
        from groupjobs.results import result_of_run

        return result_of_run(self._item.run)

    @property
    def attempt(self) -> int:
        """The number of this try in this life, from 1."""
        return self._item.attempt

    @property
    def fence(self) -> int:
        """The number of this reservation; a later attempt's is greater."""
        return self._item.reservation.fence

    @property
    def run_id(self) -> int:
        """The id of the run's row."""
        return self._item.run

    @property
    def group(self) -> str:
        """The run's group; empty when it is a group of its own."""
        return self._item.row.group

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked to cancel this run; learnt within about a second."""
        return self._item.cancelled

    def check(self) -> None:
        """End the run as CANCELLED if somebody asked for it; raises Cancel, which is no Exception."""
        if self._item.cancelled:
            raise Cancel("requested")

    def progress(
        self, done: int | None = None, total: int | None = None, message: str | None = None, phase: str | None = None
    ) -> None:
        """Say how far the run has come. Cheap: the guard writes the last word about four times a second."""
        said = {"done": done, "total": total, "message": message, "phase": phase}
        known = self._item.progress or {}
        self._item.progress = known | {name: value for name, value in said.items() if value is not None}

    def track(self, iterable: Iterable[T], total: int | None = None, message: str | None = None) -> Iterator[T]:
        """Iterate and count; checks for cancellation before each step."""
        if total is None and isinstance(iterable, Sized):
            total = len(iterable)
        self.progress(done=0, total=total, message=message)
        for done, value in enumerate(iterable, 1):
            self.check()
            yield value
            self.progress(done=done)
