"""The job of the walks: its handler does what the walk says."""

from __future__ import annotations

import threading
from typing import Any

from groupjobs import job


@job(takes_context=True, group="{group}", max_attempts=2, backoff=0)
def acts(context: Any, group: str) -> int:
    """In a thread of a walk, what that thread's part is. Answers the number of the reservation."""
    part = getattr(threading.current_thread(), "handle", None)
    if part is not None:
        part(context)
    return int(context.fence)
