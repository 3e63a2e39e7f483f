"""The gate of an attempt: while its handler runs, the guard may raise an interrupt in its thread, and only then."""

from __future__ import annotations

import ctypes
import threading
from types import TracebackType

from groupjobs.errors import Interrupt


class Gate:
    """Open inside a `with` block around the call of a handler."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._thrown: set[type[Interrupt]] = set()

    def __enter__(self) -> None:
        self._thread = threading.get_ident()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
            if self._thrown and thread is not None:
                _throw(thread, None)  # what was thrown and has not arrived comes too late

    @property
    def used(self) -> bool:
        """Whether an interrupt was raised, which may have come in the middle of anything."""
        return bool(self._thrown)

    def throw(self, kind: type[Interrupt]) -> bool:
        """Raise this in the handler's thread at its next bytecode, once; False when no handler runs."""
        with self._lock:
            if self._thread is None or kind in self._thrown:
                return False
            self._thrown.add(kind)
            return _throw(self._thread, kind)


def _throw(thread: int, kind: type[Interrupt] | None) -> bool:
    exception = None if kind is None else ctypes.py_object(kind)
    reached: int = ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), exception)
    return reached == 1
