"""Stores whose TIME a test sets."""

from __future__ import annotations

from typing import Any

from groupjobs.store import Store, scripts
from groupjobs.store.reference import Reference

TIME = "test:time"  # seconds, microseconds
START = 1_800_000_000_000


class Clock:
    """TIME as a test sets it, in ms."""

    now = latest = START
    ttl_ms: int

    def ping(self) -> str:
        raise NotImplementedError

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with calls in between as from other processes: the queue's clock goes with it."""
        ms = round(seconds * 1000)
        while ms > 0:
            part = min(ms, self.ttl_ms // 3)
            self.now, ms = self.now + part, ms - part
            self.ping()


class Timed(Store, Clock):
    """The scripts as they are, but for TIME: they read it from a key."""

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, prefix="test", queue="q", **{"ttl": 60, **options})
        self.ttl_ms = self.settings[0]

    def call(self, verb: str, *args: Any) -> Any:
        if verb not in self.scripts:
            source = scripts.source(verb)
            assert source.count("call('TIME')") == 1
            timed = source.replace("call('TIME')", f"call('LRANGE', '{TIME}', 0, 1)")
            self.scripts[verb] = self.client.register_script(timed)
        seconds, ms = divmod(self.now, 1000)
        with self.client.pipeline() as pipeline:
            pipeline.delete(TIME).rpush(TIME, seconds, ms * 1000).execute()
        return super().call(verb, *args)


class TimedReference(Reference, Clock):
    """The reference under the same clock."""

    def __init__(self, **options: Any) -> None:
        super().__init__(queue="q", now=lambda: self.now, **{"ttl": 60, **options})
        self.now = START
        self.ttl_ms = self.ttl
