"""Insert runs and their progress rows: in the caller's transaction, one statement a thousand runs.

Raw SQL, because Django's bulk_create writes every column of every row as a parameter of its own,
which costs six times as much as the statement itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.db.models.base import ModelState

from groupjobs.ledger import sql
from groupjobs.ledger.database import alias, connection, one_commit
from groupjobs.lifecycle import LIVE

if TYPE_CHECKING:
    from groupjobs.models import JobRun

THOUSAND: Final = 1000

Line = tuple[str, str, str, str | None]  # group, args, kwargs (JSON text), dedup key


@dataclass(frozen=True, slots=True)
class Batch:
    """Runs of one job with the same options: what they share, and the line of each.

    `expires` is a moment or seconds from the database's now. `run_after` makes a run yield until then.
    """

    queue: str
    job: str
    lines: Sequence[Line]
    priority: int = 0
    order: int = 0
    run_after: datetime | None = None
    expires: datetime | float | None = None
    max_attempts: int = 1
    max_losses: int = 2
    after_failure: str = "continue"
    on_retry: str = "block"
    atomic: bool = False
    time_limit: float | None = None
    soft_time_limit: float | None = None
    coalesces: bool = False
    labels: Mapping[str, Any] = field(default_factory=dict)


_COPIED: Final = (
    "queue",
    "job",
    "priority",
    "order",
    "max_attempts",
    "max_losses",
    "after_failure",
    "on_retry",
    "atomic",
    "time_limit",
    "soft_time_limit",
    "coalesces",
)
_DEFAULTS: Final = {
    "status": "'READY'",
    "reason": "''",
    "fence": "0",
    "alone": "{false}",
    "life": "1",
    "attempts": "0",
    "failures": "0",
    "losses": "0",
    "unpublished": "{false}",
    "worker": "''",
    "consumer": "''",
    "enqueued_at": "{now}",
    "report_attempts": "0",
}
_LINE: Final = {"group": "b.new_group", "args": "b.new_args", "kwargs": "b.new_kwargs", "dedup_key": "b.new_dedup"}
_PROGRESS: Final = "run_id, done, message, phase"
_NOTHING: Final = "0, '', ''"
_COLUMNS: Final = (("new_group", "text"), ("new_args", "text"), ("new_kwargs", "text"), ("new_dedup", "text"))


@cache
def _statement(vendor: str, expiry: str) -> str:
    """`expiry` is how `expires_at` is given: "moment" or "seconds"."""
    false, now = sql.false(vendor), sql.now(vendor)
    values = {name: text.format(false=false, now=now) for name, text in _DEFAULTS.items()}
    values |= _LINE | {"args": sql.json_value(vendor, "b.new_args"), "kwargs": sql.json_value(vendor, "b.new_kwargs")}
    values |= dict.fromkeys(_COPIED, "%s")
    moment = sql.moment(vendor)
    values |= {"run_after": moment, "yields": "%s", "labels": sql.json_value(vendor, "%s")}
    values["expires_at"] = moment if expiry == "moment" else sql.in_seconds(vendor)
    names = [f"[{name}]" if name in ("group", "order") else name for name in values]
    inserted = (
        f"insert into {sql.RUN} ({', '.join(names)}) select {', '.join(values.values())} "
        f"from {sql.list_source(vendor, _COLUMNS)} order by b.place returning id, enqueued_at"
    )
    if vendor != "postgresql":
        return inserted
    progress = f"insert into {sql.PROGRESS} ({_PROGRESS}) select id, {_NOTHING} from new"
    return f"with new as ({inserted}), progress as ({progress}) select id, enqueued_at from new"


def insert(batch: Batch) -> list[JobRun]:
    """Write new runs, all or nothing; answers them in the order of the lines, with growing ids."""
    runs: list[JobRun] = []
    with one_commit():
        for start in range(0, len(batch.lines), THOUSAND):
            runs += _insert(batch, batch.lines[start : start + THOUSAND])
    return runs


def _insert(batch: Batch, lines: Sequence[Line]) -> list[JobRun]:
    database = connection()
    vendor, adapt = database.vendor, database.ops.adapt_datetimefield_value
    given = batch.expires
    seconds = isinstance(given, int | float)
    expires = given if isinstance(given, int | float) else adapt(given)
    copied = [getattr(batch, name) for name in _COPIED]
    timed = [adapt(batch.run_after), batch.run_after is not None, json.dumps(dict(batch.labels)), expires]
    with database.cursor() as cursor:
        text = sql.quoted(_statement(vendor, "seconds" if seconds else "moment"), database)
        cursor.execute(text, [*copied, *timed, *sql.list_parameters(lines)])
        answers = sorted(cursor.fetchall())  # the order of RETURNING is nobody's promise; ids grow with the lines
        if vendor != "postgresql":
            _insert_progress(cursor, vendor, [run for run, _ in answers])
    return _runs(batch, lines, _converted(answers))


def _insert_progress(cursor: Any, vendor: str, runs: Sequence[int]) -> None:
    source = sql.list_source(vendor, (("new_run", "int"),))
    text = f"insert into {sql.PROGRESS} ({_PROGRESS}) select b.new_run, {_NOTHING} from {source}"
    cursor.execute(text, sql.list_parameters([(run,) for run in runs]))


def _converted(answers: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Timestamps as Django gives them: a raw cursor answers text on SQLite."""
    from groupjobs.models import JobRun

    database = connection()
    column = JobRun._meta.get_field("enqueued_at").get_col(sql.RUN)
    value = answers[0][1]
    for convert in database.ops.get_db_converters(column):
        value = convert(value, column, database)
    return [(run, value) for run, _ in answers]  # one statement, one now


def _runs(batch: Batch, lines: Sequence[Line], answers: Sequence[tuple[int, Any]]) -> list[JobRun]:
    """The rows as instances: one that Django makes, and its copies. To make each costs more than to insert it."""
    from groupjobs.models import JobRun

    shared = {name: getattr(batch, name) for name in _COPIED}
    shared |= {"run_after": batch.run_after, "yields": batch.run_after is not None, "enqueued_at": answers[0][1]}
    fields, database, runs = vars(JobRun(**shared)), alias(), []
    for (group, args, kwargs, dedup), (run, _) in zip(lines, answers, strict=True):
        row = JobRun.__new__(JobRun)
        vars(row).update(fields, id=run, group=group, args=json.loads(args), kwargs=json.loads(kwargs))
        row.dedup_key, row.labels, row._state = dedup, dict(batch.labels), ModelState()
        row._state.adding, row._state.db = False, database
        runs.append(row)
    return runs


def flag_unpublished(runs: Sequence[int], flag: bool = True) -> None:
    """Remember in one UPDATE that Redis was not told of these runs (or, with False, that it was)."""
    from groupjobs.models import JobRun

    for start in range(0, len(runs), THOUSAND):
        rows = JobRun.objects.using(alias()).filter(pk__in=runs[start : start + THOUSAND], status__in=LIVE)
        rows.filter(unpublished=not flag).update(unpublished=flag)


def rows(runs: Sequence[int]) -> list[JobRun]:
    """The live rows of these runs, whole."""
    from groupjobs.models import JobRun

    return list(JobRun.objects.using(alias()).filter(pk__in=runs, status__in=LIVE))
