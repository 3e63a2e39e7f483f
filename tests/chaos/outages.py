"""Faults of servers. Each answers what it did, '' when it could do nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

import redis

from project import child
from tests.chaos.chaos import Chaos
from tests.chaos.crew import start_module

CATCHING = 0.5  # seconds to wait for a message to duplicate or drop
BELLS = "celery"  # the Celery queue that bells are sent to


def valkey_restart(chaos: Chaos) -> str:
    """Killed, and started again with its append-only file: perhaps a second of its memory is gone."""
    return _outage(chaos, "valkey", chaos.valkey.kill, chaos.valkey.start, _short(chaos))


def valkey_silent(chaos: Chaos) -> str:
    """Accepts and does not answer, for longer than the TTL: nobody may be robbed."""
    return _outage(chaos, "valkey", chaos.valkey.pause, chaos.valkey.resume, chaos.rng.uniform(0.5, 2) * chaos.plan.ttl)


def flush_all(chaos: Chaos) -> str:
    """Everything in Redis is gone."""
    if "valkey" in chaos.down:
        return ""
    chaos.valkey.flush()
    return "FLUSHALL"


def script_flush(chaos: Chaos) -> str:
    """Redis forgets the scripts."""
    if "valkey" in chaos.down:
        return ""
    with chaos.valkey.client() as client:
        client.script_flush()
    return "SCRIPT FLUSH"


def postgres_restart(chaos: Chaos) -> str:
    """Shut down in order, dropping its connections."""
    return _outage(chaos, "postgres", chaos.postgres.halt, chaos.postgres.start, _short(chaos))


def postgres_crash(chaos: Chaos) -> str:
    """Ended as by a crash."""
    return _outage(chaos, "postgres", chaos.postgres.kill, chaos.postgres.start, _short(chaos))


def broker_down(chaos: Chaos) -> str:
    """The broker is away."""
    return _outage(chaos, "broker", chaos.broker.kill, chaos.broker.start, chaos.rng.uniform(0.5, 5))


def bells_doubled(chaos: Chaos) -> str:
    """Bells arrive several times, some of them late."""
    bell = _catch(chaos, lambda client: client.lindex(BELLS, -1))
    if bell is None:
        return ""
    for seconds in (0.0, 0.5, 5.0):
        chaos.later(seconds, lambda: _push(chaos, bell))
    return "one bell three times"


def bells_dropped(chaos: Chaos) -> str:
    """Bells are lost."""
    dropped = 0
    until = time.monotonic() + CATCHING
    while time.monotonic() < until:
        dropped += _catch(chaos, lambda client: client.rpop(BELLS)) is not None
    return f"{dropped} bells" if dropped else ""


def recover_twice(chaos: Chaos) -> str:
    """Two people call `recover_ghosts` at once."""
    if chaos.recoveries:
        return ""
    logs = [chaos.folder / f"recovery-{len(chaos.statuses) + number}.log" for number in (1, 2)]
    chaos.recoveries = [(start_module("django", "recover_ghosts", "--json", log=log), log) for log in logs]
    chaos.later(0.5, lambda: _collect(chaos))
    return "two at once"


def _collect(chaos: Chaos) -> None:
    """Statuses are 0, 1 (refused: a rebuild goes on) or 2 (a server was down); a traceback is a crash."""
    for process, log in [found for found in chaos.recoveries if found[0].poll() is not None]:
        chaos.recoveries.remove((process, log))
        chaos.statuses.append(process.returncode)
        if process.returncode not in (0, 1, 2) or "Traceback" in log.read_text():
            chaos.crashes.append(f"recover_ghosts ended with status {process.returncode}:\n{child.tail(log)}")
    if chaos.recoveries:
        chaos.later(0.5, lambda: _collect(chaos))


def _short(chaos: Chaos) -> float:
    """Seconds: mostly a moment, now and then longer than the TTL."""
    return chaos.rng.choice([0.0, 0.2, 1.0, 2.0 * chaos.plan.ttl])


def _outage(chaos: Chaos, name: str, begin: Callable[[], None], end: Callable[[], object], seconds: float) -> str:
    if name in chaos.down:
        return ""

    def over() -> None:
        end()
        chaos.down.discard(name)

    chaos.down.add(name)
    begin()
    chaos.later(seconds, over)
    return f"for {seconds:.1f} s"


def _bells(chaos: Chaos) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(chaos.broker.socket), password=chaos.broker.password, db=1)


def _catch(chaos: Chaos, take: Callable[[redis.Redis], object]) -> bytes | None:
    if "broker" in chaos.down:
        return None
    until = time.monotonic() + CATCHING
    with _bells(chaos) as client:
        while time.monotonic() < until:
            found = take(client)
            if isinstance(found, bytes):
                return found
    return None


def _push(chaos: Chaos, bell: bytes) -> None:
    if "broker" not in chaos.down:
        with _bells(chaos) as client:
            client.rpush(BELLS, bell)
