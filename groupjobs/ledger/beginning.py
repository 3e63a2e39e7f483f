"""Begin a batch: every row says RUNNING, its new fence and its consumer before any handler starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from groupjobs.ledger import sql
from groupjobs.ledger.attempts import Attempt, record, started_at
from groupjobs.ledger.database import alias, connection, one_commit
from groupjobs.lifecycle import Seen

_COLUMNS: sql.Columns = (
    ("run_id", "int"),
    ("seen_fence", "int"),
    ("seen_status", "text"),
    ("new_fence", "int"),
    ("new_alone", "bool"),
    ("lost", "int"),
    ("new_worker", "text"),
    ("new_consumer", "text"),
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """One run to begin: its row as it was seen, the fence and hint of its reservation, and who serves it.

    `lost`: the row's older attempt ended as a ghost, which is logged with it; `counted`: that costs a loss,
    which this same UPDATE counts.
    """

    row: Seen
    fence: int
    alone: bool
    worker: str
    consumer: str
    lost: bool = False
    counted: bool = False


@cache
def _statement(vendor: str) -> str:
    now = sql.now(vendor)
    assignments = (
        "status = 'RUNNING', fence = b.new_fence, alone = b.new_alone, worker = b.new_worker, "
        "consumer = b.new_consumer, losses = r.losses + b.lost, attempts = r.attempts + b.lost, "
        "dedup_key = case when r.coalesces then null else r.dedup_key end, "
        f"run_after = null, yields = {sql.false(vendor)}, unpublished = {sql.false(vendor)}, "
        f"last_attempted_at = {now}, started_at = coalesce(r.started_at, {now})"
    )
    condition = "r.id = b.run_id and r.fence = b.seen_fence and r.status = b.seen_status"
    return sql.update_from(vendor, assignments, _COLUMNS, condition)


def begin(beginnings: Sequence[Beginning]) -> set[int]:
    """Move these runs to RUNNING under their new fences, each exactly as it was seen. Answers who began.

    A run that somebody else moved in between is not in the answer; nothing is raised for it.
    """
    if not beginnings:
        return set()
    lost = [Attempt.lost(b.row, b.row.fence) for b in beginnings if b.lost]
    keyed = any(b.row.keyed for b in beginnings)
    if not lost and not keyed:
        return _begin(beginnings)
    with one_commit():
        started = started_at(lost)
        begun = _begin(_unlocked(beginnings) if keyed else beginnings)
        record([attempt for attempt in lost if attempt.run in begun], started)
    return begun


def _unlocked(beginnings: Sequence[Beginning]) -> list[Beginning]:
    """Without those whose rows an `enqueue` holds until its caller's commit: a batch waits for no transaction."""
    from groupjobs.models import JobRun

    if not connection().features.has_select_for_update_skip_locked:
        return list(beginnings)
    rows = JobRun.objects.using(alias()).filter(pk__in=[b.row.id for b in beginnings])
    free = set(rows.select_for_update(skip_locked=True).order_by("pk").values_list("pk", flat=True))
    return [b for b in beginnings if b.row.id in free]


def _begin(beginnings: Sequence[Beginning]) -> set[int]:
    if not beginnings:
        return set()
    database = connection()
    rows = [
        (b.row.id, b.row.fence, b.row.status, b.fence, b.alone, int(b.counted), b.worker, b.consumer)
        for b in sorted(beginnings, key=lambda b: b.row.id)  # one order of row locks for everybody
    ]
    with database.cursor() as cursor:
        cursor.execute(_statement(database.vendor), sql.list_parameters(rows))
        if cursor.rowcount == len(rows):
            return {b.row.id for b in beginnings}
    return _began({b.row.id: b.fence for b in beginnings}, beginnings[0].consumer)


def _began(fences: dict[int, int], consumer: str) -> set[int]:
    """Read back who carries the new fence: also right when the first UPDATE's reply was lost."""
    database = connection()
    condition, parameters = sql.members(database, "id", list(fences))
    with database.cursor() as cursor:
        cursor.execute(
            f"select id, fence from {sql.RUN} where status = 'RUNNING' and consumer = %s and {condition}",
            [consumer, *parameters],
        )
        return {run for run, fence in cursor.fetchall() if fences[run] == fence}
