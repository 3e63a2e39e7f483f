"""An outage of a server: one log line when it begins, one when it ends, and a breaker in between."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

logger = logging.getLogger("groupjobs")

PAUSE: Final = 5.0  # seconds that a breaker skips a server that failed


class Outage:
    """What this process knows of one server's being down or silent. Safe to share between threads."""

    def __init__(self, name: str, pause: float = PAUSE) -> None:
        self.name = name
        self.pause = pause
        self._lock = threading.Lock()
        self._since: float | None = None
        self._until = 0.0

    @property
    def on(self) -> bool:
        """Whether the server failed and has not answered since."""
        return self._since is not None

    def skip(self, sooner: float = 0.0) -> bool:
        """Whether to leave the server alone for now: it failed less than `pause` (less `sooner`) seconds ago."""
        return time.monotonic() < self._until - sooner

    def failed(self, error: BaseException, consequence: str) -> None:
        """The server failed; `consequence` says what happens instead. Logged once an outage, before `skip` is true."""
        with self._lock:
            first = self._since is None
            if first:
                self._since = time.monotonic()
        if first:
            logger.warning("%s does not answer (%s: %s); %s", self.name, type(error).__name__, error, consequence)
        with self._lock:
            if self._since is not None:  # else it answered another thread in the meantime
                self._until = time.monotonic() + self.pause

    def ended(self) -> None:
        """The server answered. Costs one comparison while there is no outage."""
        if self._since is None:
            return
        with self._lock:
            since, self._since, self._until = self._since, None, 0.0
        if since is not None:
            logger.warning("%s answers again after %.1f s", self.name, time.monotonic() - since)
