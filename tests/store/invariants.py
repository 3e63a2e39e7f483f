"""What must be true of the queue's keys at any moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import redis

from tests.store.travel import TIME, Timed


@dataclass
class Keys:
    """The queue's keys as Python values."""

    runs: dict[str, dict[str, str]]
    lines: dict[str, list[tuple[str, float]]]
    held: dict[str, set[str]]
    leases: dict[str, set[str]]
    zsets: dict[str, dict[str, float]]
    hashes: dict[str, dict[str, str]]
    strings: dict[str, str]


def read(client: redis.Redis, base: str) -> Keys:
    found = Keys({}, {}, {}, {}, {}, {}, {})
    for key in (raw.decode() for raw in client.scan_iter(count=1000) if raw.decode() != TIME):
        assert key.startswith(base + ":"), f"{key} does not share the hash tag {base}"
        family, _, name = key[len(base) + 1 :].partition(":")
        value = value_of(client, key)
        if family == "line":
            found.lines[name] = value
        elif family in ("held", "leases"):
            getattr(found, family)[name] = value
        elif family == "run":
            found.runs[name] = value
        elif isinstance(value, list):
            found.zsets[family] = dict(value)
        else:
            (found.hashes if isinstance(value, dict) else found.strings)[family] = value
    return found


def value_of(client: Any, key: str) -> Any:
    kind = client.type(key)
    if kind == b"zset":
        return [(name.decode(), score) for name, score in client.zrange(key, 0, -1, withscores=True)]
    if kind == b"hash":
        return {name.decode(): value.decode() for name, value in client.hgetall(key).items()}
    if kind == b"set":
        return {name.decode() for name in client.smembers(key)}
    return client.get(key).decode()


@dataclass(frozen=True)
class Limits:
    """The settings of the store under test."""

    limit: int = 1
    rate: tuple[int, float] | None = None  # count, seconds


def check(store: Timed, limits: Limits | None = None) -> Keys:
    """Whatever happened, the keys agree with each other."""
    limits = limits or Limits()
    k = read(store.client, store.base)
    check_places(k)
    check_leases(k)
    store.latest = max(store.latest, store.now)
    check_groups(k, limits, store.latest)
    highest = max((int(run.get("f", 0)) for run in k.runs.values()), default=0)
    assert highest <= int(k.strings.get("fence", 0)), "the counter is above every fence"
    return k


def check_places(k: Keys) -> None:
    in_line = [run for line in k.lines.values() for run, _ in line]
    assert len(in_line) == len(set(in_line)), "a run stands in one line"
    for run, fields in k.runs.items():
        standing = any(run == other for other, _ in k.lines.get(fields["g"], ()))
        places = (standing, "s" in fields, "c" in fields)
        assert sum(places) == 1, f"{run} is in exactly one place: {fields} {places}"
    scheduled = {run for run, fields in k.runs.items() if "s" in fields}
    assert scheduled == set(k.zsets.get("scheduled", {}))


def check_leases(k: Keys) -> None:
    leased = {run: fields for run, fields in k.runs.items() if "c" in fields}
    assert {(f["c"], run) for run, f in leased.items()} == {(c, run) for c, runs in k.leases.items() for run in runs}
    assert {(f["g"], run) for run, f in leased.items()} == {(g, run) for g, runs in k.held.items() for run in runs}
    known = {*k.hashes.get("consumers", {}), *k.zsets.get("dead", {})}
    assert set(k.leases) <= known, "whoever holds a lease is registered or to be healed"


def check_groups(k: Keys, limits: Limits, now: int) -> None:
    ready, later = k.zsets.get("ready", {}), k.zsets.get("later", {})
    assert not set(ready) & set(later)
    assert set(ready) | set(later) <= set(k.lines)
    for group in k.lines:
        at = time_of(k, group, limits, now)
        if at is None:
            assert group not in ready, f"{group!r} cannot be served"
            assert group not in later, f"{group!r} is not kept by time"
        elif group in later:
            assert later[group] == at or group in k.zsets.get("tokens", {}) or later[group] <= now
        else:
            assert group in ready, f"{group!r} is servable"
            assert at <= now


def time_of(k: Keys, group: str, limits: Limits, now: int) -> float | None:
    """When the group may be served; None while something else than time keeps it."""
    version_held_limit_rate = k.hashes.get("groups", {}).get(group, "0 0 0 0 0").split()
    _, held, limit, count, period = map(int, version_held_limit_rate)
    if held or len(k.held.get(group, ())) >= (limit or limits.limit):
        return None
    head = k.runs.get(k.lines[group][0][0], {})
    at = float(head.get("t", 0))
    if count == 0 and limits.rate:
        count, period = limits.rate[0], round(limits.rate[1] * 1000)
    if count and group in k.zsets.get("tokens", {}):
        at = max(at, k.zsets["tokens"][group] - period + period / count)
    return at
