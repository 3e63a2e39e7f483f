"""`python -m bench`: jobs per second to drain, rows included, beside a plain Celery task in the same run."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

import redis
from rich.console import Console
from rich.table import Table

from bench.world import GaveUp, servers, worker


def main() -> int:
    """Exit status 1 when something was not completed exactly once."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--plain", type=int, default=4_000, help="plain Celery tasks in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--children", type=int, default=2)
    parser.add_argument("--database", choices=["postgres", "sqlite"], action="append")
    options = parser.parse_args()
    try:
        for database in options.database or ["postgres", "sqlite"]:
            _measure(database, options)
    except GaveUp as error:
        sys.stderr.write(f"bench failed: {error}\n")
        return 1
    return 0


def _measure(database: str, options: argparse.Namespace) -> None:
    with servers(database) as world:
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connections

        connections.close_all()
        call_command("migrate", verbosity=0)
        with worker(world.folder, options.children):
            _rounds(database, options)
        connections.close_all()


def _rounds(database: str, options: argparse.Namespace) -> None:
    from bench import drain
    from bench.work import jobs
    from groupjobs import bell

    app = bell.app()
    client = redis.from_url(app.conf.broker_url.replace("redis+socket", "unix").replace("virtual_host", "db"))
    drain.grouped(jobs.noop, 500, 50)  # warm
    drain.plain(app, client, 200)
    grouped, plain, atomic = [], [], []
    for _ in range(options.rounds):
        grouped.append(drain.grouped(jobs.noop, options.runs, options.groups))
        plain.append(drain.plain(app, client, options.plain))
        atomic.append(drain.grouped(jobs.atomic_noop, options.plain, options.groups))
    _print(database, options, {"groupjobs, no-op": grouped, "groupjobs, atomic": atomic, "plain Celery": plain})


def _print(database: str, options: argparse.Namespace, rows: dict[str, Sequence[object]]) -> None:
    from bench.drain import Drained

    table = Table(title=f"{database}: {options.runs} runs, {options.groups} groups, {options.children} children")
    for name in ("what", "jobs/s min", "median", "max", "entered/s", "times plain"):
        table.add_column(name, justify="left" if name == "what" else "right")
    rates = {name: [r.drained for r in found if isinstance(r, Drained)] for name, found in rows.items()}
    plain = statistics.median(rates["plain Celery"])
    for name, found in rows.items():
        drained = rates[name]
        entered = statistics.median(r.entered for r in found if isinstance(r, Drained))
        middle = statistics.median(drained)
        cells = [f"{number:,.0f}" for number in (min(drained), middle, max(drained), entered)]
        table.add_row(name, *cells, f"{middle / plain:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    sys.exit(main())
