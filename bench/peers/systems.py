"""The systems that are compared: what each needs, how its workers are started, and when it has nothing left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bench.peers.places import ROOT, environment

Left = Callable[[Any, Any], int]  # (Redis client, database cursor) -> jobs that are not settled

KINDS: Final = "bench.peers.kinds"
POSTGRES: Final = "psycopg[binary]>=3.2"
DJANGO: Final = "django>=5.2,<6"


def rows(query: str) -> Left:
    """Jobs left by a query that counts them."""

    def count(_: Any, cursor: Any) -> int:
        cursor.execute(query)
        return int(cursor.fetchone()[0])

    return count


def keys(*names: str) -> Left:
    """Jobs left in lists, hashes and sorted sets of Redis."""
    lengths = {"list": "LLEN", "hash": "HLEN", "zset": "ZCARD", "set": "SCARD", "none": "", "stream": "XLEN"}

    def count(client: Any, _: Any) -> int:
        found = [(lengths[client.type(name).decode()], name) for name in names]
        return sum(int(client.execute_command(length, name)) for length, name in found if length)

    return count


@dataclass(frozen=True)
class System:
    """One system. `jobs`: of a no-op round, so that it lasts some seconds; `keeps`: "rows or order", or "neither"."""

    name: str
    label: str
    keeps: str
    jobs: int
    requires: tuple[str, ...]
    workers: tuple[tuple[str, ...], ...]
    enter: tuple[str, ...]
    left: Left
    setup: tuple[tuple[str, ...], ...] = ()
    tables: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    node: bool = False
    arrivals: int = 2
    gated: bool = True  # False: one that sleeps for seconds when its threads are busy; its workers start after the jobs
    saved: str = ""  # a query that counts results, where they are written after the handlers have ended

    def program(self, *command: str) -> list[str]:
        """A command line in this system's environment."""
        if self.node:
            return ["node", str(ROOT / "bench/peers/kinds/node.mjs"), *command]
        python = sys.executable if not self.requires else str(environment(self.name) / "bin" / "python")
        return [python, "-m", *command]


def _django(command: str) -> tuple[str, ...]:
    return (f"{KINDS}.django_run", *command.split())


def _node(name: str, label: str, keeps: str, jobs: int, at: int, left: Left) -> System:
    return System(
        f"{name}-{at}", f"{label}, concurrency {at}", keeps, jobs, (name, "ioredis"), ((name, "worker", str(at)),),
        (name, "enter"), left, node=True, arrivals=1,
    )  # fmt: skip


def _celery(module: str) -> tuple[str, ...]:
    return ("celery", "-A", f"{KINDS}.{module}", "worker", "-c", "2", "--loglevel", "WARNING")


CELERY_LEFT: Final = keys("celery", "unacked")
GROUPMQ_LEFT: Final = keys("groupmq:bench:ready", "groupmq:bench:processing")

SYSTEMS: Final = (
    System(
        "groupjobs", "groupjobs", "rows and order", 20_000, (), (
            ("celery", "-A", "project", "worker", "-c", "2", "--loglevel", "WARNING"),
        ), (f"{KINDS}.own",),
        rows("select count(*) from groupjobs_jobrun where status in ('READY', 'RUNNING')"),
        setup=(("django", "migrate", "--verbosity", "0"),),
        tables=("groupjobs_jobrun",), settings={"DJANGO_SETTINGS_MODULE": "bench.settings", "LOG_LEVEL": "WARNING"},
    ),
    System(
        "celery", "Celery", "neither", 2_000, ("celery[redis]>=5.5",), (_celery("plain_celery"),),
        (f"{KINDS}.plain_celery",), CELERY_LEFT,
    ),
    System(
        "celery-rows", "Celery, two row updates a task", "rows", 600, ("celery[redis]>=5.5", DJANGO, POSTGRES),
        (_celery("celery_rows"),), (f"{KINDS}.celery_rows",),
        rows("select count(*) from rows_row where status <> 'SUCCEEDED'"), (_django("migrate --run-syncdb"),),
        ("rows_row",), {"BENCH_APPS": f"{KINDS}.rows", "DJANGO_SETTINGS_MODULE": f"{KINDS}.django_settings"},
    ),
    System(
        "procrastinate", "procrastinate, a lock a group", "rows and order", 1_000, ("procrastinate>=3", POSTGRES),
        (("procrastinate", "-a", f"{KINDS}.procrastinate_lock.app", "worker", "-c", "8", "-p", "0.1"),) * 2,
        (f"{KINDS}.procrastinate_enter",),
        rows("select count(*) from procrastinate_jobs where status in ('todo', 'doing')"),
        ((f"{KINDS}.procrastinate_enter", "schema"),), ("procrastinate_jobs",),
    ),
    System(
        "django-tasks-db", "django-tasks-db", "rows", 700, ("django-tasks-db[compat]", DJANGO, POSTGRES),
        (_django("db_worker --no-startup-delay --no-reload"),) * 2, (f"{KINDS}.tasks_db",),
        rows("select count(*) from django_tasks_database_dbtaskresult where status in ('READY', 'RUNNING')"),
        (_django("migrate"),), ("django_tasks_database_dbtaskresult",), {"BENCH_APPS": "django_tasks,django_tasks_db"},
    ),
    System(
        "django-q2", "django-q2, Redis broker", "rows", 1_000, ("django-q2", "redis", DJANGO, POSTGRES),
        (_django("qcluster"),), (f"{KINDS}.q2",), keys("django_q:bench:q"), (_django("migrate"),),
        ("django_q_task",), saved="select count(*) from django_q_task", settings={"BENCH_APPS": "django_q"},
    ),
    System(
        "django-rq", "django-rq", "rows", 200, ("django-rq", DJANGO, POSTGRES),
        (_django("rqworker default"),) * 2, (f"{KINDS}.rq_django",), keys("rq:queue:default", "rq:wip:default"),
        settings={"BENCH_APPS": "django_rq"},
    ),
    System(
        "dramatiq", "dramatiq, Redis", "neither", 5_000, ("dramatiq[redis]",),
        (("dramatiq", f"{KINDS}.dramatiq_redis", "-p", "2", "-t", "8"),), (f"{KINDS}.dramatiq_redis",),
        keys("dramatiq:default.msgs"),
        gated=False,
    ),
    System(
        "huey", "huey, Redis", "neither", 4_000, ("huey", "redis"),
        (("huey.bin.huey_consumer", f"{KINDS}.huey_redis.huey", "-w", "2", "-k", "process", "-q"),),
        (f"{KINDS}.huey_redis",), keys("huey.redis.bench"),
    ),
    _node("groupmq", "groupmq", "order", 20_000, 8, GROUPMQ_LEFT),
    _node("groupmq", "groupmq", "order", 20_000, 32, GROUPMQ_LEFT),
    _node("bullmq", "BullMQ", "neither", 20_000, 8, keys("bull:bench:wait", "bull:bench:active")),
    _node("bullmq", "BullMQ", "neither", 20_000, 32, keys("bull:bench:wait", "bull:bench:active")),
)  # fmt: skip
