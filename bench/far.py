"""`python -m bench.far`: throughput when Redis and PostgreSQL are far, beside the same with both near.

Exit status 1 when less than 70 % is kept, or when something was not completed exactly once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from bench.delay import Delay
from bench.world import GaveUp, servers, worker

KEPT: Final = 0.7


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m bench.far", description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--children", type=int, default=4)
    parser.add_argument("--milliseconds", type=float, default=2.0, help="of each way")
    options = parser.parse_args()
    try:
        with servers("postgres") as world:
            return _measure(world.folder, options)
    except GaveUp as error:
        sys.stderr.write(f"bench failed: {error}\n")
        return 1


def _measure(folder: Path, options: argparse.Namespace) -> int:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from bench import drain
    from bench.work import jobs

    call_command("migrate", verbosity=0)
    rates: dict[str, list[float]] = {"near": [], "far": []}
    with far_addresses(folder, options.milliseconds / 1000) as far:
        for _ in range(options.rounds):
            for place, found in rates.items():
                (folder / "worker.log").unlink(missing_ok=True)
                with environment(far if place == "far" else {}), worker(folder, options.children):
                    drain.grouped(jobs.noop, 1_000, 50)  # warm
                    found.append(drain.grouped(jobs.noop, options.runs, options.groups).drained)
    connections.close_all()
    kept = statistics.median(rates["far"]) / statistics.median(rates["near"])
    for place, found in rates.items():
        said = f"{min(found):,.0f} {statistics.median(found):,.0f} {max(found):,.0f}"
        sys.stdout.write(f"{place:5} jobs/s min, median, max: {said}\n")
    verdict = "ok" if kept >= KEPT else "MISSED"
    sys.stdout.write(f"{options.children} children, {options.milliseconds:g} ms each way: {kept:.0%} kept, {verdict}\n")
    return int(kept < KEPT)


@contextmanager
def far_addresses(folder: Path, seconds: float) -> Iterator[dict[str, str]]:
    """Environment variables that name both servers at the end of a long wire."""
    redis, database = os.environ["REDIS_URL"], os.environ["DATABASE_URL"]
    near_redis = Path(urlsplit(redis).path)
    near_database = Path(parse_qs(urlsplit(database).query)["host"][0])
    port = ".s.PGSQL.5432"
    with Delay({folder / "r": near_redis, folder / port: near_database / port}, seconds):
        yield {
            "REDIS_URL": redis.replace(str(near_redis), str(folder / "r")),
            "BROKER_URL": os.environ["BROKER_URL"].replace(str(near_redis), str(folder / "r")),
            "DATABASE_URL": database.replace(str(near_database), str(folder)),
        }


@contextmanager
def environment(changes: dict[str, str]) -> Iterator[None]:
    """These variables for what is started meanwhile."""
    before = {name: os.environ[name] for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.update(before)


if __name__ == "__main__":
    sys.exit(main())
