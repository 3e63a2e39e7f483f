"""Insert runs of which, by job and key, only one may be live: a duplicate answers that one, its twin.

Everything happens in the caller's transaction. A key that another transaction takes in between ends a
savepoint, never that transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from django.db import IntegrityError
from django.db.models import Case, F, Value, When
from django.db.models.functions import Now

from groupjobs.ledger import sql
from groupjobs.ledger.database import alias, connection, one_commit
from groupjobs.ledger.inserting import THOUSAND, Batch, Line, insert
from groupjobs.ledger.transitions import transit
from groupjobs.lifecycle import EXPIRED, READY

if TYPE_CHECKING:
    from groupjobs.models import JobRun

TRIES: Final = 20  # a key may be taken and let go again between two looks
LOCK: Final = {"postgresql": " for share", "mysql": " lock in share mode"}


def insert_once(batch: Batch, on_duplicate: str, names: Sequence[str]) -> list[JobRun]:
    """Insert runs, or find their twins among live runs of the job's `names`; in the order of the lines.

    A twin says `duplicate`. "replace" gives a twin that waits the arguments of the last line with its key;
    "coalesce" keeps it from beginning before the caller's commit.
    """
    runs: list[JobRun] = []
    with one_commit():
        for start in range(0, len(batch.lines), THOUSAND):
            lines = batch.lines[start : start + THOUSAND]
            made = _insert_rest(replace(batch, lines=lines), on_duplicate, names)
            runs += [_take_over(run, line) if on_duplicate == "replace" else run for run, line in made]
    return runs


def _insert_rest(batch: Batch, on_duplicate: str, names: Sequence[str]) -> list[tuple[JobRun, Line]]:
    """Each line with its run: its twin, or a new row."""
    for attempt in range(TRIES):
        twins = _twins(batch, on_duplicate, names)
        places = _first_places(batch.lines, twins)
        try:
            made = dict(zip(places, insert(replace(batch, lines=[batch.lines[n] for n in places])), strict=True))
        except IntegrityError:  # another transaction took one of the keys; by now it has committed
            if attempt + 1 == TRIES:
                raise
            continue
        for run in made.values():
            if run.dedup_key is not None:
                twins[run.dedup_key] = run
        return [(made.get(n) or _marked(twins[line[3] or ""]), line) for n, line in enumerate(batch.lines)]
    raise AssertionError("not reached")


def _first_places(lines: Sequence[Line], twins: Mapping[str, JobRun]) -> list[int]:
    """The lines that need a row: those without a key, and the first one of each key that is free."""
    seen: set[str] = set(twins)
    places = []
    for place, (_, _, _, key) in enumerate(lines):
        if key is None or key not in seen:
            places.append(place)
        if key is not None:
            seen.add(key)
    return places


def _marked(twin: JobRun) -> JobRun:
    answer = copy(twin)
    answer.duplicate = True
    return answer


def _twins(batch: Batch, on_duplicate: str, names: Sequence[str]) -> dict[str, JobRun]:
    """The live runs that have the keys, by key. One that has expired without having begun ends here."""
    from groupjobs.models import JobRun

    wanted = sorted({key for _, _, _, key in batch.lines if key is not None})
    if not wanted:
        return {}
    if on_duplicate == "coalesce":
        _keep_waiting(batch.queue, names, wanted)
    runs = JobRun.objects.using(alias()).filter(queue=batch.queue, job__in=names, dedup_key__in=wanted)
    late = Case(When(status=READY, expires_at__lte=Now(), then=Value(True)), default=Value(False))
    found: dict[str, JobRun] = {}
    for run in runs.annotate(late=late):
        if not (run.late and transit("cancel", run.pk, READY, run.fence, reason=EXPIRED)):
            found[run.dedup_key or ""] = run
    return found


def _keep_waiting(queue: str, names: Sequence[str], keys: Sequence[str]) -> None:
    """Lock the twins, shared, until the caller's transaction ends: what begins later sees what it wrote.

    Locks are taken in the order of ids. A consumer does not wait for them, it passes over the row.
    """
    database = connection()
    lock = LOCK.get(database.vendor)
    if lock is None:  # SQLite has one writer at a time
        return
    marks = [", ".join(["%s"] * len(values)) for values in (names, keys)]
    with database.cursor() as cursor:
        cursor.execute(
            # `status` is in no index of these columns: else MariaDB locks an entry of the index, and not the row.
            f"select id, status from {sql.RUN} where queue = %s and job in ({marks[0]}) and dedup_key in ({marks[1]}) "
            f"order by id{lock}",
            [queue, *names, *keys],
        )


def _take_over(run: JobRun, line: Line) -> JobRun:
    """New arguments for a twin that waits. Its fence grows, so that who has loaded the old ones cannot begin."""
    from groupjobs.models import JobRun

    if not run.duplicate:
        return run
    args, kwargs = json.loads(line[1]), json.loads(line[2])
    while run.status == READY:
        waiting = JobRun.objects.using(alias()).filter(pk=run.pk, status=READY, fence=run.fence)
        changed = waiting.update(args=args, kwargs=kwargs, fence=F("fence") + 1)
        run.refresh_from_db()
        if changed:
            break
    return run
