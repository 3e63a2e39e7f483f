"""Named SQL blocks, written once and spelt for each database.

Raw SQL, because a batch is begun and settled with one statement that carries other values for each
run (`UPDATE ... FROM`), which Django's ORM can only say as a slow CASE WHEN.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper

RUN: Final = "groupjobs_jobrun"
GROUP: Final = "groupjobs_jobgroup"
PROGRESS: Final = "groupjobs_jobprogress"

_NOW: Final = {
    "postgresql": "statement_timestamp()",
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now'{local})",
    "mysql": "{utc}(6)",
}
_SECONDS_UNTIL: Final = {
    "postgresql": "extract(epoch from {column} - statement_timestamp())::float8",
    "sqlite": "(julianday({column}) - julianday('now'{local})) * 86400.0",
    "mysql": "timestampdiff(microsecond, {utc}(6), {column}) / 1e6",
}
_TYPES: Final = {
    "postgresql": {"int": "bigint", "bool": "boolean", "text": "text"},
    "mysql": {"int": "BIGINT", "bool": "TINYINT", "text": "LONGTEXT"},
}


def _spell(template: str, **names: str) -> str:
    local = "" if settings.USE_TZ else ", 'localtime'"
    utc = "utc_timestamp" if settings.USE_TZ else "now"
    return template.format(local=local, utc=utc, **names)


def now(vendor: str) -> str:
    """The database's own clock, as the columns of the tables hold it."""
    return _spell(_NOW[vendor])


def seconds_until(vendor: str, column: str) -> str:
    """Seconds from the database's now to a timestamp column; NULL when that is NULL."""
    return _spell(_SECONDS_UNTIL[vendor], column=column)


def false(vendor: str) -> str:
    """The database's word for false."""
    return "false" if vendor == "postgresql" else "0"


def moment(vendor: str) -> str:
    """A parameter that is a timestamp, or NULL."""
    return "%s::timestamptz" if vendor == "postgresql" else "%s"


_IN_SECONDS: Final = {
    "postgresql": "statement_timestamp() + %s * interval '1 second'",
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now'{local}, %s || ' seconds')",
    "mysql": "{utc}(6) + interval %s second",
}


def in_seconds(vendor: str) -> str:
    """The database's now plus a parameter in seconds."""
    return _spell(_IN_SECONDS[vendor])


def quoted(template: str, connection: BaseDatabaseWrapper) -> str:
    """Quote the two column names that SQL reserves: `[group]` and `[order]`."""
    quote = connection.ops.quote_name
    return template.replace("[group]", quote("group")).replace("[order]", quote("order"))


def members(connection: BaseDatabaseWrapper, column: str, values: Sequence[int]) -> tuple[str, list[Any]]:
    """A condition "column is one of values" and its parameters; one plan for any length on PostgreSQL."""
    if connection.vendor == "postgresql":
        return f"{column} = any(%s)", [list(values)]
    return f"{column} in ({','.join(['%s'] * len(values))})", list(values)


Columns = tuple[tuple[str, str], ...]


@cache
def list_source(vendor: str, columns: Columns) -> str:
    """A list `b` to select from, with its columns, (name, kind) pairs, and `place`, which counts its rows.

    It travels as one JSON parameter: escaping arrays of text costs psycopg as much as the statement.
    Kinds: int, bool, text.
    """
    if vendor == "mysql":
        paths = ", ".join(f"{name} {_TYPES[vendor][kind]} path '$[{n}]'" for n, (name, kind) in enumerate(columns))
        return f"json_table(%s, '$[*]' columns(place for ordinality, {paths})) as b"
    if vendor == "sqlite":
        picks = ", ".join(f"json_extract(value, '$[{n}]') as {name}" for n, (name, _) in enumerate(columns))
        return f"(select key as place, {picks} from json_each(%s)) as b"
    picks = ", ".join(f"(value->>{n})::{_TYPES[vendor][kind]} as {name}" for n, (name, kind) in enumerate(columns))
    return f"(select place, {picks} from jsonb_array_elements(%s::jsonb) with ordinality as e(value, place)) as b"


@cache
def update_from(vendor: str, assignments: str, columns: Columns, condition: str) -> str:
    """One UPDATE of runs `r` from a list `b`.

    Columns of `b` must not be called like columns of `r` that are assigned: MariaDB could not tell
    them apart. It has to be told as well to look the runs up by id: a scan would wait for rows that others
    have locked.
    """
    source = list_source(vendor, columns)
    if vendor == "mysql":
        return f"update {source} straight_join {RUN} as r force index (primary) on {condition} set {assignments}"
    return f"update {RUN} as r set {assignments} from {source} where {condition}"


def json_value(vendor: str, column: str) -> str:
    """A text column of `b` as a value for a JSON column of `r`."""
    return f"{column}::jsonb" if vendor == "postgresql" else column


def list_parameters(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """The parameter of `update_from` or `list_source` for these rows."""
    return [json.dumps([list(row) for row in rows])]
