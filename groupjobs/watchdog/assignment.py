"""What a worker tells its watchdog over stdin: one line of JSON, because it may hold credentials."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from groupjobs import conf


@dataclass(frozen=True, slots=True)
class Assignment:
    """`main`: process id of the worker's main process; `home`: its folder; `slots` of its pool.

    `level`: of the log; `settings`: GROUPJOBS, as far as it matters here.
    """

    main: int
    home: str
    slots: int
    level: int
    settings: dict[str, Any]

    def line(self) -> bytes:
        """As one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def of(cls, line: bytes) -> Assignment:
        """From that line."""
        return cls(**json.loads(line))


def told(settings: conf.Settings) -> dict[str, Any]:
    """The settings as a project would write them, in JSON."""
    queues = {
        name: {"consumers": queue.consumers, "group_concurrency": queue.group_concurrency, "rate": queue.rate}
        for name, queue in settings.queues.items()
    }
    return {
        "REDIS": settings.redis,
        "PREFIX": settings.prefix,
        "WORKER_TTL": settings.worker_ttl,
        "QUEUES": queues,
    }
