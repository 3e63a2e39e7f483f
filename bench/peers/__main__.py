"""`python -m bench.peers`: the same work on other queues, in alternating rounds on the same servers and machine.

Exit status 1 when a system did not complete exactly what was enqueued, or could not be installed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Sequence

from bench import world
from bench.peers.places import NotInstalled, install
from bench.peers.report import Results, write
from bench.peers.servers import Servers, running
from bench.peers.systems import SYSTEMS, System
from bench.peers.visit import Job, visiting
from project.folders import short_folder

WORK = {
    "groups": "no-op, 20 runs in each group (1,000 groups)",
    "one": "no-op, one group (5,000 runs)",
    "single": "no-op, a group for each run (20,000)",
    "5ms": "a handler of 5 ms, 20 runs in each group",
    "mixed": "95 % no-op, 5 % of 200 ms, 20 runs in each group",
}
SLOWEST = {"5ms": 1_000, "mixed": 400, "one": 5_000}


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the first kind of work")
    parser.add_argument("--other-rounds", type=int, default=1, help="rounds of the other kinds of work")
    parser.add_argument("--work", choices=sorted(WORK), action="append")
    parser.add_argument("--system", choices=[system.name for system in SYSTEMS], action="append")
    parser.add_argument("--scale", type=float, default=1.0, help="times the number of jobs")
    parser.add_argument("--seconds", type=float, default=690.0, help="no further visit is begun after so many")
    parser.add_argument("--install", action="store_true", help="make the environments and end")
    parser.add_argument("--write", action="store_true", help="write bench/README.md and bench/results/latest.json")
    options = parser.parse_args()
    world.PATIENCE = 90.0  # a system that hangs must not take the others' time
    chosen = [system for system in SYSTEMS if not options.system or system.name in options.system]
    results = Results(WORK)
    here = [system for system in chosen if _installed(system, results)]
    if not options.install:
        with running() as servers:
            _rounds(servers, here, options, results)
        write(results, files=options.write)
    return 1 if results.problems else 0


def _installed(system: System, results: Results) -> bool:
    try:
        install(system.name, system.requires, node=system.node)
    except NotInstalled as error:
        results.problem(system, str(error))
        return False
    return True


def _rounds(servers: Servers, systems: Sequence[System], options: argparse.Namespace, results: Results) -> None:
    folder = short_folder("groupjobs-peers-")
    failed: dict[str, int] = defaultdict(int)
    until = time.monotonic() + options.seconds
    try:
        for number in range(options.rounds):
            for system in systems:
                kinds = [kind for kind in options.work or WORK if kind == "groups" or number < options.other_rounds]
                if failed[system.name] or time.monotonic() > until:
                    continue
                try:
                    with visiting(system, servers, folder / f"{number}-{system.name}") as visit:
                        if number == 0:
                            visit.measure(jobs_of("groups", max(40, system.jobs // 20)))  # warm
                            results.picked_up(system, visit.pickups())
                        for kind in kinds:
                            jobs = jobs_of(kind, _count(system, kind, options.scale))
                            results.add(system, kind, visit.measure(jobs))
                        results.memory(system, visit.memory())
                except world.GaveUp as error:
                    failed[system.name] += 1
                    results.problem(system, str(error))
                finally:
                    servers.leave()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _count(system: System, kind: str, scale: float) -> int:
    return max(40, int(scale * min(system.jobs, SLOWEST.get(kind, system.jobs))))


def jobs_of(kind: str, count: int) -> list[Job]:
    """Group and milliseconds of each job; the same for every system."""
    chance = random.Random(1)
    groups = {"one": 1, "single": count}.get(kind, max(1, count // 20))
    milliseconds = {"5ms": 5.0}.get(kind, 0.0)
    jobs = [(number % groups, milliseconds) for number in range(count)]
    if kind != "mixed":
        return jobs
    long = set(chance.sample(range(count), count // 20))
    return [(group, 200.0 if number in long else 0.0) for number, (group, _) in enumerate(jobs)]


if __name__ == "__main__":
    sys.exit(main())
