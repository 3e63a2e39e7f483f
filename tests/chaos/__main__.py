"""`python -m tests.chaos`: the last line says in JSON how it went; the exit status is 0 when nothing was broken."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.faults import NAMES
from tests.chaos.plan import Plan


def plan(arguments: list[str] | None = None) -> tuple[Plan, bool]:
    """The plan, and whether to keep the folder of logs."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--runs", type=int, default=5000, help="runs to commit")
    parser.add_argument("--seconds", type=float, default=40, help="how long there are faults")
    parser.add_argument("--seed", type=int, default=None, help="the same seed, the same schedule")
    parser.add_argument("--faults", type=int, default=None, help="how many (default: one every 2.5 seconds)")
    parser.add_argument("--groups", type=int, default=400)
    parser.add_argument("--poison", type=int, default=2, help="runs that kill their process")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--ttl", type=float, default=2.0, help="WORKER_TTL in seconds")
    parser.add_argument("--only", action="append", default=[], choices=NAMES, help="only these faults")
    parser.add_argument("--keep", action="store_true", help="keep all logs, whatever comes of it")
    given = vars(parser.parse_args(arguments))
    keep = given.pop("keep")
    given["seed"] = random.randrange(1_000_000) if given["seed"] is None else given["seed"]
    given["faults"] = round(given["seconds"] / 2.5) if given["faults"] is None else given["faults"]
    return Plan(**given), keep


def main() -> int:
    """Run once; answers the exit status."""
    from tests.chaos.course import run

    planned, keep = plan()
    folder = Path(tempfile.mkdtemp(prefix="groupjobs-chaos-"))
    print(f"{planned}\nlogs: {folder}", flush=True)
    clean = run(planned, folder)
    if clean and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
