"""A wire that is long: a proxy between unix sockets that hands everything on after a delay, in both directions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self


class Delay:
    """Proxies in a thread of their own: path of a socket to make -> path of the server's, `seconds` each way."""

    def __init__(self, sockets: Mapping[Path, Path], seconds: float) -> None:
        self.sockets = sockets
        self.seconds = seconds
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()

    async def _listen(self) -> None:
        for made, server in self.sockets.items():
            await self._loop.create_unix_server(partial(_Near, server, self.seconds), str(made))


class _End(asyncio.Protocol):
    """One end of a connection; what it receives goes to `other` after the delay."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.transport: asyncio.Transport | None = None
        self.other: _End | None = None
        self.early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        asyncio.get_running_loop().call_later(self.seconds, self._hand_on, data)

    def _hand_on(self, data: bytes) -> None:
        if self.other is None or self.other.transport is None:
            self.early.append(data)
        else:
            self.other.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class _Near(_End):
    """The client's end; it connects to the server."""

    def __init__(self, server: Path, seconds: float) -> None:
        super().__init__(seconds)
        self.server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        far = _End(self.seconds)
        far.other = self
        await asyncio.get_running_loop().create_unix_connection(lambda: far, str(self.server))
        self.other = far
        for data in self.early:
            self._hand_on(data)
