"""Where an execution of the consumer task tells its worker's watchdog what it does."""

from __future__ import annotations

from typing import Protocol


class Executions(Protocol):
    """The executions of one queue that a watchdog watches, as a consumer sees them."""

    def register(self, nonce: str, pid: int) -> None:
        """This execution serves from now on."""

    def sign_off(self, nonce: str) -> None:
        """This execution has ended."""

    def deadline(self, nonce: str, run: int, fence: int, seconds: float) -> None:
        """This run begins; its process is killed if `clear` is not called within so many seconds."""

    def clear(self, nonce: str) -> None:
        """The run has ended in time."""


class Unwatched:
    """Nobody watches: outside of a worker."""

    def register(self, nonce: str, pid: int) -> None:
        """Tell nobody."""

    def sign_off(self, nonce: str) -> None:
        """Tell nobody."""

    def deadline(self, nonce: str, run: int, fence: int, seconds: float) -> None:
        """There is no hard limit here."""

    def clear(self, nonce: str) -> None:
        """Tell nobody."""
