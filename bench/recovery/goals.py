"""What the numbers are to be at most."""

from __future__ import annotations


def goals(host_ttl: float) -> dict[str, float]:
    """Name -> the largest value that is good; `host_ttl`: WORKER_TTL in seconds where only it can tell of a death."""
    return {
        "main_p99_ms": 1000,
        "child_p99_ms": 1000,
        "both_max_ms": 1000 * (host_ttl + 2),
        "pickup_p95_ms": 500,
        "idle_commands_per_s": 3,
        "blocked_commands_per_s": 3,
        "heal_longest_ms": 10,
        "rebuild_longest_ms": 10,
    }
