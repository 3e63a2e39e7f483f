"""`python -m bench.scale`: what a backlog of a million runs costs, on PostgreSQL.

One consumer in this process drains a small backlog and slices of a big one, and the CPU time of a run, with
that of both servers, is compared. Exit status 1 when a goal is missed or a count is not exact.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bench.peers.costs import cpu
from bench.world import GaveUp, servers
from groupjobs.store import Publication, Store

QUEUE: Final = "default"
WORKER: Final = "bench:1:scale"
LONG_MS: Final = 10.0
BYTES: Final = 150
RATIO: Final = 1.2


@dataclass(frozen=True)
class Cost:
    """Microseconds of a run."""

    cpu: float
    wall: float


class Bench:
    """The queue, its rows, and what was found."""

    def __init__(self, store: Store, postgres: int) -> None:
        self.store = store
        self.postgres = postgres
        self.longest: dict[str, tuple[float, str]] = {}
        self.failed: list[str] = []

    def fill(self, runs: int, groups: int, due_ms: int | None = None) -> None:
        """Rows made by one statement, and told to Redis a thousand at a time."""
        first = insert(runs, groups, due_ms)
        for start in range(0, runs, 1000):
            numbers = range(start, min(runs, start + 1000))
            told = [
                Publication(first + n, f"g:{n % groups}", due_ms=due_ms, yields=due_ms is not None) for n in numbers
            ]
            self.store.enqueue(told)

    def drain(self, runs: int) -> Cost:
        """Serve so many runs; their rows must have succeeded."""
        from bench.work import jobs
        from groupjobs.consumer import serve
        from groupjobs.models import JobRun

        before = JobRun.objects.filter(status="SUCCEEDED").count()
        self.store.beat(WORKER, 1, {})
        jobs.TALLY.clear()
        begun, spent = time.monotonic(), self._cpu()
        serve(QUEUE, WORKER, lambda: len(jobs.TALLY) >= runs)
        wall, spent = time.monotonic() - begun, self._cpu() - spent
        done = JobRun.objects.filter(status="SUCCEEDED").count() - before
        if done != len(jobs.TALLY) or done < runs:
            raise GaveUp(f"{len(jobs.TALLY)} handlers ran, {done} rows succeeded, {runs} were wanted")
        return Cost(1e6 * spent / done, 1e6 * wall / done)

    def watch(self, state: str, work: Callable[[], Any]) -> Any:
        """Do it, and remember the longest script call meanwhile."""
        client = self.store.client
        client.config_set("slowlog-log-slower-than", 300)
        client.config_set("slowlog-max-len", 10_000)
        client.slowlog_reset()
        answer = work()
        found = [(entry["duration"] / 1000, entry["command"]) for entry in client.slowlog_get(10_000)]
        scripts = [(took, command) for took, command in found if command.lower().startswith((b"evalsha", b"eval"))]
        took, command = max(scripts, default=(0.0, b""))
        self.longest[state] = (took, self._verb(command))
        self.judge(f"longest script call, {state}", took, "ms", LONG_MS)
        return answer

    def _verb(self, command: bytes) -> str:
        sha = command.split()[1].decode() if b" " in command else ""
        return next((verb for verb, script in self.store.scripts.items() if script.sha == sha), "under 0.3 ms")

    def judge(self, what: str, figure: float, unit: str, most: float) -> None:
        """Print a figure beside its bound."""
        verdict = "ok" if figure <= most else "MISSED"
        if figure > most:
            self.failed.append(what)
        by = f"  ({self.longest[what.split(', ')[1]][1]})" if what.startswith("longest") else ""
        say(f"{what:45} {figure:10.2f} {unit:6} at most {most:g}: {verdict}{by}")

    def _cpu(self) -> float:
        servers_pids = [int(self.store.client.info("server")["process_id"]), self.postgres]
        return time.process_time() + cpu(servers_pids)

    def clear(self) -> None:
        """Nothing is left of what was entered."""
        from django.db import connection

        self.store.client.flushall()
        self.store.open(self.store.tick(WORKER, 1).epoch)
        with connection.cursor() as cursor:
            cursor.execute("truncate groupjobs_jobrun cascade")


def say(text: str) -> None:
    """One line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def insert(runs: int, groups: int, due_ms: int | None) -> int:
    """Rows as `enqueue_many` writes them, copied from one that it wrote; answers the first id."""
    from django.db import connection

    from bench.work import jobs
    from groupjobs import ledger, registry
    from groupjobs.models import JobRun

    line = ("g:0", "[]", "{}", None)
    template = ledger.insert(ledger.Batch(QUEUE, registry.name_of(jobs.tally), [line]))[0].pk
    changed = {"id", "group", "kwargs", "run_after", "yields"}
    columns = ", ".join(f'"{f.column}"' for f in JobRun._meta.concrete_fields if f.column not in changed)
    with connection.cursor() as cursor:
        cursor.execute(
            f'insert into groupjobs_jobrun ("group", kwargs, run_after, yields, {columns}) '
            f"select 'g:' || n %% %s, jsonb_build_object('group', n %% %s), to_timestamp(%s / 1000.0), %s, {columns} "
            "from groupjobs_jobrun, generate_series(0, %s - 1) n where id = %s order by n",
            [groups, groups, due_ms, due_ms is not None, runs, template],
        )
        JobRun.objects.filter(pk=template).delete()
        cursor.execute("insert into groupjobs_jobprogress (run_id, done, message, phase) "
                       "select id, 0, '', '' from groupjobs_jobrun where id > %s", [template])  # fmt: skip
        cursor.execute("vacuum analyze groupjobs_jobrun")
        cursor.execute("select min(id), max(id) from groupjobs_jobrun where id > %s", [template])
        first, last = cursor.fetchone()
    if last - first + 1 != runs:
        raise GaveUp(f"{runs} rows were to be made, ids go from {first} to {last}")
    return int(first)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--slice", type=int, default=20_000, help="runs of the big backlog to drain in each round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with servers("postgres"):
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connections

        call_command("migrate", verbosity=0)
        try:
            return measure(options)
        except GaveUp as error:
            sys.stderr.write(f"bench failed: {error}\n")
            return 1
        finally:
            connections.close_all()


def measure(options: argparse.Namespace) -> int:
    """Small backlog, states, big backlog."""
    from groupjobs.store import store_for

    bench = Bench(store_for(QUEUE), _postmaster())
    bench.clear()
    bench.fill(2_000, 200)
    bench.drain(2_000)  # warm
    small = _small(bench, options.rounds)
    _states(bench)
    big = _big(bench, options)
    ratio = statistics.median(c.cpu for c in big) / statistics.median(c.cpu for c in small)
    for name, costs in (("10,000 runs in 1,000 groups", small), (f"{options.runs:,} runs", big)):
        spent = ", ".join(f"{c.cpu:.0f} CPU {c.wall:.0f} wall" for c in costs)
        say(f"microseconds a run, {name}: {spent}")
    bench.judge("cost of a run, big over small", ratio, "", RATIO)
    return 1 if bench.failed else 0


def _postmaster() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("select pg_read_file('postmaster.pid')")
        return int(cursor.fetchone()[0].split()[0])


def _small(bench: Bench, rounds: int) -> list[Cost]:
    costs = []
    for _ in range(rounds):
        bench.clear()
        bench.fill(10_000, 1_000)
        costs.append(bench.drain(10_000))
    return costs


def _states(bench: Bench) -> None:
    from groupjobs import recovery

    bench.clear()
    bench.fill(10_000, 10_000)
    for number in range(10_000):
        bench.store.hold(f"g:{number}", 1, True)
    bench.watch("held (10,000 groups)", lambda: _fill_and_look(bench, 5_000, None))
    bench.clear()
    due = int((time.time() + 3_600) * 1000)
    bench.watch("scheduled (100,000)", lambda: _fill_and_look(bench, 100_000, due))
    bench.clear()
    bench.fill(10_000, 1_000)
    bench.store.client.flushall()
    bench.watch("rebuilding", lambda: recovery.recover(recovery.Scope(queue=QUEUE)))
    bench.watch("draining", lambda: bench.drain(10_000))


def _fill_and_look(bench: Bench, runs: int, due_ms: int | None) -> None:
    bench.fill(runs, runs // 10, due_ms)
    for _ in range(20):
        bench.store.tick(WORKER, 1)
        bench.store.overview()
    page = bench.store.entries()
    while page.cursor:
        page = bench.store.entries(page.cursor)


def _big(bench: Bench, options: argparse.Namespace) -> list[Cost]:
    bench.clear()
    before = bench.store.client.info("memory")["used_memory"]
    begun = time.monotonic()
    bench.watch("waiting (a million)", lambda: bench.fill(options.runs, options.groups))
    say(f"backlog made in {time.monotonic() - begun:.0f} s")
    held = bench.store.client.info("memory")["used_memory"] - before
    bench.judge("bytes of Redis for a waiting run", held / options.runs, "bytes", BYTES)
    costs = [bench.watch("draining a million", lambda: bench.drain(options.slice)) for _ in range(options.rounds)]
    _recover(bench, options.runs - options.rounds * options.slice)
    return costs


def _recover(bench: Bench, least: int) -> None:
    from groupjobs import recovery

    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.monotonic()
    report = bench.watch("recovering", lambda: recovery.recover(recovery.Scope(queue=QUEUE), dry_run=True))
    seconds = time.monotonic() - begun
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    examined = report.counts["examined"]
    say(f"recover_ghosts: {examined:,} healthy rows, {examined / seconds:,.0f} rows/s, memory grew by {grown:.0f} MB")
    if not 0.9 * least <= examined <= least or report.moved():
        raise GaveUp(f"recovery examined {examined} of {least} and would move {report.moved()}")


if __name__ == "__main__":
    sys.exit(main())
