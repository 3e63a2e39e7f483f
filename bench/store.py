"""`python -m bench.store`: runs per second through the scripts alone: enqueue, and step with 64 per call.

Exit status 1 unless every run was reserved and settled exactly once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from groupjobs.store import Consumer, Outcome, Publication, Store
from project.embedded import EmbeddedValkey


def main() -> int:
    """Measure and print; see the module."""
    parser = argparse.ArgumentParser(prog="python -m bench.store", description=__doc__)
    parser.add_argument("--runs", type=int, default=50_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--want", type=int, default=64)
    options = parser.parse_args()
    valkey = EmbeddedValkey()
    valkey.start()
    try:
        with valkey.client() as client:
            return measure(Store(client, prefix="bench", queue="q", ttl=15), options)
    finally:
        valkey.stop()


def measure(store: Store, options: argparse.Namespace) -> int:
    """Enqueue all, then serve all."""
    store.open(store.tick("w", 1).epoch)
    told = [Publication(run, f"g{run % options.groups}") for run in range(1, options.runs + 1)]
    timed(store, "enqueue", options.runs, lambda: store.enqueue(told))
    served: list[int] = []
    timed(store, f"step {options.want}", options.runs, lambda: serve(store, options.want, served))
    return int(sorted(served) != [p.run for p in told])


def serve(store: Store, want: int, served: list[int]) -> None:
    """One consumer, until nothing is ready."""
    consumer, number, told = Consumer("one", "w:1:a", 1), 0, list[Outcome]()
    while True:
        number += 1
        reply = store.step(consumer, number, want, told)
        if reply.ended:
            return
        served += [r.run for r in reply.reservations]
        told = [Outcome(r.run, r.fence, "done") for r in reply.reservations]


def timed(store: Store, name: str, runs: int, work: Callable[[], object]) -> None:
    """Run the work and print its speed, and what the server alone needed for a run."""
    store.client.config_resetstat()
    begun = time.perf_counter()
    work()
    seconds = time.perf_counter() - begun
    spent = store.client.info("commandstats")["cmdstat_evalsha"]
    server = f"server {spent['usec'] / runs:.1f} us a run, {spent['usec_per_call'] / 1000:.2f} ms a call"
    sys.stdout.write(f"{name:10} {runs / seconds:10,.0f} runs/s   {server}\n")


if __name__ == "__main__":
    sys.exit(main())
