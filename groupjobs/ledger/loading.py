"""Load a batch for its consumer: rows, and in the same round trip what is ahead of them in their groups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from groupjobs import conf
from groupjobs.ledger import sql
from groupjobs.ledger.database import connection
from groupjobs.lifecycle import Seen

_COLUMNS = (
    "r.id, r.[group], r.job, r.args, r.kwargs, r.status, r.fence, r.alone, r.life, r.attempts, r.failures, r.losses, "
    "r.max_attempts, r.max_losses, r.after_failure, r.on_retry, r.atomic, r.time_limit, r.soft_time_limit, "
    "r.worker, r.consumer, r.labels, r.cancel_requested_at is not null, coalesce(r.expires_at <= {now}, {false}), "
    "coalesce({early}, 0), -({age}), coalesce({ahead}), "
    "coalesce(g.held, {false}) or coalesce(q.held, {false}), coalesce(g.version, 0), r.[order], r.queue, "
    "r.coalesces, r.dedup_key is not null"
)
_AHEAD = (
    "(select e.id from {run} e where e.queue = r.queue and e.[group] = r.[group] and r.[group] <> '' "
    "and e.status in ('READY', 'RUNNING') and (e.status = 'READY' or coalesce(g.group_concurrency, {limit}) = 1) "
    "and {earlier} and (not e.yields or e.run_after is null or e.run_after <= {now}) and not ({outside}) "
    "order by e.[order], e.id limit 1)"
)
# Each is a range of the index that ends at the run's own place, so the line behind it costs nothing. PostgreSQL
# takes a pair as a range; the others need two questions, and with OR all of them read the whole line.
_PAIR = ("(e.[order], e.id) < (r.[order], r.id)",)
_SINGLE = ("e.[order] < r.[order]", "e.[order] = r.[order] and e.id < r.id")
_SOURCE = (
    "from {run} r left join {group} g on g.queue = r.queue and g.[group] = r.[group] and r.[group] <> '' "
    "left join {group} q on q.queue = r.queue and q.[group] = '' "
    "where r.queue = %s and {inside}"
)


def _earlier(vendor: str) -> tuple[str, ...]:
    return _PAIR if vendor == "postgresql" else _SINGLE


@cache
def _template(vendor: str) -> str:
    now = sql.now(vendor)
    kept = {"outside": "{outside}", "limit": "{limit}"}
    ahead = [_AHEAD.format(run=sql.RUN, now=now, earlier=part, **kept) for part in _earlier(vendor)]
    return f"select {_COLUMNS} {_SOURCE}".format(
        run=sql.RUN,
        group=sql.GROUP,
        now=now,
        ahead=", ".join(ahead),
        false="false" if vendor == "postgresql" else "0",
        early=sql.seconds_until(vendor, "r.run_after"),
        age=sql.seconds_until(vendor, "r.enqueued_at"),
        inside="{inside}",
    )


def load(queue: str, runs: Sequence[int]) -> dict[int, Seen]:
    """The rows of these runs of one queue by id, each with the earlier live run of its group, if any.

    Where a group's limit is above 1, an earlier run that is RUNNING has begun and is in nobody's way.
    Rows of other queues are left out, so a mixed-up entry finds nothing. One query; no row is locked.
    """
    database = connection()
    outside, outer = sql.members(database, "e.id", runs)
    inside, inner = sql.members(database, "r.id", runs)
    known = conf.current().queues.get(queue)
    limit = str(known.group_concurrency if known else 1)
    text = (
        _template(database.vendor).replace("{outside}", outside).replace("{inside}", inside).replace("{limit}", limit)
    )
    with database.cursor() as cursor:
        cursor.execute(sql.quoted(text, database), [*outer * len(_earlier(database.vendor)), queue, *inner])
        seen = Seen._make if database.vendor == "postgresql" else _seen
        return {row[0]: seen(row) for row in cursor.fetchall()}


def _seen(row: tuple[Any, ...]) -> Seen:
    flags = {7, 16, 22, 23, 27, 31, 32}  # SQLite and MariaDB answer 0 and 1
    return Seen._make([bool(value) if n in flags else value for n, value in enumerate(row)])
