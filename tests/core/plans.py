"""How a database answers the queries of a piece of code: what each of them reads of the table of runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from groupjobs.models import JobRun

RUN = "groupjobs_jobrun"
Query = tuple[str, Any]


@contextmanager
def queries() -> Iterator[list[Query]]:
    """The statements about runs that are sent inside, each once, with the parameters of its first call."""
    seen: dict[str, Any] = {}

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if RUN in sql and not many:
            seen.setdefault(sql, params)
        return execute(sql, params, many, context)

    found: list[Query] = []
    with connection.execute_wrapper(note):
        yield found
    found += seen.items()


def fill(number: int) -> None:
    """So many thousand ended runs, and statistics about them: a hundredth of them ended badly."""
    ended = "2026-01-01T00:00:00+00:00"
    rows = [
        JobRun(
            queue="default",
            group=f"old{n % 100}",
            job="j",
            status="SUCCEEDED" if n % 100 else "FAILED",
            finished_at=ended,
        )
        for n in range(1000)
    ]
    JobRun.objects.bulk_create(rows)
    names = ", ".join(connection.ops.quote_name(f.attname) for f in JobRun._meta.fields if not f.primary_key)
    with connection.cursor() as cursor:
        for _ in range(number.bit_length() - 1):
            cursor.execute(f"insert into {RUN} ({names}) select {names} from {RUN}")
        cursor.execute("analyze")


def plan_of(sql: str, params: Any) -> list[str]:
    """The lines of the database's plan."""
    prefix = "explain query plan " if connection.vendor == "sqlite" else "explain "
    with connection.cursor() as cursor:
        cursor.execute(prefix + sql, params)
        return [str(row[-1]) for row in cursor.fetchall()]


def reads_the_table(sql: str, params: Any, windows: bool = False) -> list[str]:
    """The plan if it may read every row, else nothing. A first page in the order of ids reads no more than itself.

    `windows`: it may walk over ids above or below a bound, which is known to be near.
    """
    plan = plan_of(sql, params)
    whole = _whole_in_sqlite if connection.vendor == "sqlite" else _whole_in_postgres
    return plan if whole(plan, sql, windows) else []


def _whole_in_sqlite(plan: list[str], sql: str, windows: bool) -> bool:
    bare = any(re.match(rf"SCAN ({RUN}|r|e)$", line) for line in plan)
    walked = any(re.match(rf"SEARCH ({RUN}|r|e) USING INTEGER PRIMARY KEY \(rowid[<>]", line) for line in plan)
    return (bare and not _first_page(sql)) or (walked and not windows)


def _whole_in_postgres(plan: list[str], sql: str, windows: bool) -> bool:
    for number, line in enumerate(plan):
        told = " ".join(plan[number + 1 : number + 3])
        if f"Seq Scan on {RUN}" in line and not _first_page(sql):
            return True
        walked = not re.search(r"Index Cond: \([^)]*=", told) and not (windows and "Index Cond" in told)
        if f"{RUN}_pkey on" in line and "Filter" in told and walked:
            return True
    return False


def _first_page(sql: str) -> bool:
    return "WHERE" not in sql and "LIMIT" in sql
