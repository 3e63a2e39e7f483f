"""Wires that fail: a port that accepts and never answers, and a proxy that loses or delays replies."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Self


class _Listener:
    """Accepts connections in a thread of its own until closed."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._open.append(connection)
            self.accepted(connection)

    def accepted(self, connection: socket.socket) -> None:
        """Called for each new connection; the base class lets it wait."""

    def cut(self) -> None:
        """Close the connections that are open; new ones are accepted."""
        while self._open:
            connection = self._open.pop()
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def close(self) -> None:
        """Close everything."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()
        self._thread.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SilentPort(_Listener):
    """A TCP port of this machine that accepts every connection and never answers."""

    def __init__(self) -> None:
        server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = server.getsockname()[1]
        super().__init__(server)

    @property
    def redis_url(self) -> str:
        """As a Redis."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def amqp_url(self) -> str:
        """As a RabbitMQ."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"


class Proxy(_Listener):
    """A unix socket in front of another one.

    `drop_replies(n)`: the next n pieces of reply are lost with their connections, after the server did
    the work. `hold()` and `release()`: nothing passes in either direction in between.
    """

    def __init__(self, path: Path, target: Path) -> None:
        self.path = path
        self._target = target
        self._passing = threading.Event()
        self._passing.set()
        self._lost = 0
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        server.listen(64)
        super().__init__(server)

    def drop_replies(self, number: int = 1) -> None:
        """Lose the next replies."""
        self._lost = number

    def hold(self) -> None:
        """Let nothing pass."""
        self._passing.clear()

    def release(self) -> None:
        """Let everything pass, also what waited."""
        self._passing.set()

    def close(self) -> None:
        """Close everything."""
        self._passing.set()
        super().close()

    def accepted(self, connection: socket.socket) -> None:
        """Connect it to the target."""
        target = socket.socket(socket.AF_UNIX)
        target.connect(str(self._target))
        self._open.append(target)
        threading.Thread(target=self._pump, args=(connection, target, False), daemon=True).start()
        threading.Thread(target=self._pump, args=(target, connection, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, replies: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._passing.wait()
                if replies and self._lost:
                    self._lost -= 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
