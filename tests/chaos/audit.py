"""The database's own notes of every write of a run's status, made by a trigger, and the final rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from django.db import connection

from tests.chaos.history import Change, Effect, Row

SETUP = """
create table chaos_change (
    id bigserial primary key, run bigint not null, before text not null, after text not null,
    fence_before bigint not null, fence bigint not null, lost integer not null, worker text not null,
    at timestamptz not null default clock_timestamp()
);
create function chaos_note() returns trigger language plpgsql as $$
begin
    insert into chaos_change (run, before, after, fence_before, fence, lost, worker)
    values (new.id, old.status, new.status, old.fence, new.fence, new.losses - old.losses, old.worker);
    return null;
end $$;
create trigger chaos_note after update of status on groupjobs_jobrun for each row execute function chaos_note();
"""
ROWS = "select id, kwargs->>'token', status, fence from groupjobs_jobrun order by id"
CHANGES = """
select run, before, after, fence_before, fence, lost, worker, extract(epoch from at)::float
from chaos_change order by id
"""
EFFECTS = "select run, fence from chaos_effect"


def set_up() -> None:
    """Make the trigger; the runs' table exists. Leaves no connection, because the server will be ended."""
    with connection.cursor() as cursor:
        cursor.execute(SETUP)
    connection.close()


def rows() -> list[Row]:
    """The final rows."""
    return [Row(*row) for row in _all(ROWS)]


def changes() -> list[Change]:
    """Every write of a status, in order; their times on the monotonic clock."""
    offset = time.time() - time.monotonic()
    return [replace(change, at=change.at - offset) for change in (Change(*row) for row in _all(CHANGES))]


def effects() -> list[Effect]:
    """What handlers wrote."""
    return [Effect(*row) for row in _all(EFFECTS)]


def live() -> int:
    """How many runs have not ended."""
    [(count,)] = _all("select count(*) from groupjobs_jobrun where status in ('READY', 'RUNNING')")
    return int(count)


def details(run: int) -> Iterator[str]:
    """Everything that the database says of a run, for a person."""
    with connection.cursor() as cursor:
        for table, column in (("groupjobs_jobrun", "id"), ("groupjobs_jobattempt", "run_id"), ("chaos_change", "run")):
            cursor.execute(f"select * from {table} where {column} = %s order by id", [run])
            names = [column[0] for column in cursor.description or ()]
            for row in cursor.fetchall():
                known = [f"{name}={value}" for name, value in zip(names, row, strict=True) if value not in (None, "")]
                yield f"{table}: {' '.join(known)}"


def _all(query: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())
