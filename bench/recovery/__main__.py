"""`python -m bench.recovery`: real workers die, idle and heal; the last line says in JSON how it went.

Exit status 1 when a goal is missed, or when something did not happen at all.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kombu import Connection, Queue

from bench.recovery import commands, healing, kills, pickups
from bench.recovery.fleet import fleet
from bench.recovery.goals import goals
from bench.world import GaveUp, servers
from project.embedded import EmbeddedValkey

Numbers = dict[str, float]


def main() -> int:
    """Measure what is asked for, and judge."""
    options = arguments()
    try:
        with servers("postgres") as world, broker(options.broker):
            prepare()
            numbers = dict(measured(world.folder, world.valkey, options))
    except GaveUp as error:
        sys.stderr.write(f"bench failed: {error}\n")
        return 1
    missed = [name for name, most in goals(options.host_ttl).items() if numbers.get(name, 0) > most]
    sys.stdout.write(json.dumps({**numbers, "missed": missed}) + "\n")
    return 1 if missed else 0


def arguments() -> argparse.Namespace:
    """How much of everything."""
    parser = argparse.ArgumentParser(prog="python -m bench.recovery", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(PARTS), help="only these parts")
    parser.add_argument("--broker", default="", help="URL of a broker (default: the embedded Valkey)")
    parser.add_argument("--kills", type=int, default=50, help="of main processes, and as many of children")
    parser.add_argument("--hosts", type=int, default=6, help="losses of a main process together with its watchdog")
    parser.add_argument("--host-ttl", type=float, default=3.0, help="WORKER_TTL for these, in seconds")
    parser.add_argument("--pickups", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long commands are counted")
    parser.add_argument("--blocked", type=int, default=1000, help="groups that cannot be served")
    parser.add_argument("--leases", type=int, default=10_000, help="of dead workers")
    return parser.parse_args()


@contextmanager
def broker(url: str) -> Iterator[None]:
    """Take this broker instead of the embedded one, with a Celery queue of our own in it."""
    if not url:
        yield
        return
    name = f"bench-{secrets.token_hex(4)}"
    os.environ.update(BROKER_URL=url, BENCH_QUEUE=name)
    try:
        yield
    finally:
        with Connection(url) as connection:
            Queue(name, channel=connection.default_channel).delete()


def prepare() -> None:
    """Make the tables; Django is set up here because the servers' addresses are known only now."""
    import django
    from django.core.management import call_command
    from django.db import connections

    os.environ["LOG_LEVEL"] = "ERROR"
    django.setup()
    connections.close_all()
    call_command("migrate", verbosity=0)


def measured(folder: Path, valkey: EmbeddedValkey, options: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """Every number with its name; each part begins with an empty Redis and an empty table."""
    from groupjobs.models import JobGroup, JobRun

    for name, part in PARTS.items():
        if options.only and name not in options.only:
            continue
        JobRun.objects.all().delete()
        JobGroup.objects.all().delete()
        valkey.flush()
        found = part(folder, valkey, options)
        sys.stdout.write(f"{name}: {found}\n")
        sys.stdout.flush()
        yield from found.items()


def _killed(how: str, folder: Path, count: int, ttl: float) -> Numbers:
    with fleet(folder, GROUPJOBS=json.dumps({"WORKER_TTL": ttl})) as started:
        seconds = kills.measure(started, getattr(kills, how), count)
    parts = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    times = {f"{how}_{name}_ms": float(kills.percentile(seconds, share)) for name, share in parts.items()}
    return {f"{how}_kills": count, f"{how}_ttl_s": ttl, **times}


def _mains(folder: Path, valkey: EmbeddedValkey, options: argparse.Namespace) -> Numbers:
    return _killed("main", folder, options.kills, 15)


def _children(folder: Path, valkey: EmbeddedValkey, options: argparse.Namespace) -> Numbers:
    return _killed("child", folder, options.kills, 15)


def _hosts(folder: Path, valkey: EmbeddedValkey, options: argparse.Namespace) -> Numbers:
    return _killed("both", folder, options.hosts, options.host_ttl)


def _pickups(folder: Path, valkey: EmbeddedValkey, options: argparse.Namespace) -> Numbers:
    with fleet(folder, BENCH_PREFETCH=pickups.PREFETCH) as started:
        seconds = pickups.measure(started, options.pickups)
    return {f"pickup_p{share}_ms": float(kills.percentile(seconds, share / 100)) for share in (50, 95, 99)}


def _idle(folder: Path, valkey: EmbeddedValkey, options: argparse.Namespace) -> Numbers:
    with fleet(folder) as started:
        seen = commands.idle(started, valkey, options.seconds)
    return {"idle_commands_per_s": round(seen.total() / options.seconds, 2)}


def _blocked(folder: Path, valkey: EmbeddedValkey, options: argparse.Namespace) -> Numbers:
    with fleet(folder) as started:
        seen = commands.blocked(started, valkey, options.seconds, options.blocked)
    return {"blocked_commands_per_s": round(seen.total() / options.seconds, 2)}


def _healing(folder: Path, valkey: EmbeddedValkey, options: argparse.Namespace) -> Numbers:
    return _longest("heal", healing.healed, folder, valkey, options.leases)


def _rebuilding(folder: Path, valkey: EmbeddedValkey, options: argparse.Namespace) -> Numbers:
    return _longest("rebuild", healing.rebuilt, folder, valkey, options.leases)


def _longest(name: str, part: Callable[..., Numbers], folder: Path, valkey: EmbeddedValkey, leases: int) -> Numbers:
    with fleet(folder, GROUPJOBS=json.dumps({"WORKER_TTL": 3})) as started:
        found = part(started, valkey, leases)
    calls = {f"{name}_{verb}_ms": round(longest, 2) for verb, longest in sorted(found.items())}
    return {f"{name}_longest_ms": round(max(found.values(), default=0.0), 2), **calls}


PARTS = {
    "mains": _mains,
    "children": _children,
    "hosts": _hosts,
    "pickups": _pickups,
    "idle": _idle,
    "blocked": _blocked,
    "healing": _healing,
    "rebuilding": _rebuilding,
}

if __name__ == "__main__":
    sys.exit(main())
