"""The broker's address from Redis's."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit, urlunsplit


def broker_url(redis_url: str) -> str:
    """The Celery URL of the server that redis-py reaches by this URL; Celery spells unix sockets differently."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    number = parse_qs(parts.query).get("db", ["0"])[-1]
    return urlunsplit(("redis+socket", parts.netloc, parts.path, f"virtual_host={number}", ""))
