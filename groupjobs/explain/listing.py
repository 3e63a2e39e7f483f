"""Which groups a page shows: bounded reads in index order, however many runs and groups there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Exists, OuterRef, Value

from groupjobs import ledger
from groupjobs.ledger import conditions
from groupjobs.models import JobGroup, JobRun
from groupjobs.store.keys import line_name

WINDOW: Final = 5_000  # live rows that one look at the oldest ones reads
WINDOWS: Final = 8

Found = tuple[str, str, int]  # queue, group, and for '' the run that is a group of its own (else 0)


@dataclass(frozen=True, slots=True)
class Listed:
    """Groups in the order asked for; `more` continues where they end, '' when that was all."""

    found: list[Found]
    more: str = ""


def listed(order: str, queues: Sequence[str], after: str, limit: int) -> Listed:
    """Up to `limit` groups of these queues.

    `order`: "oldest" (by their oldest live run), "name", "held" (those that are held) or "unreported" (those
    with an abandonment that is not reported). `after` is the `more` of the page before; nonsense begins anew.
    """
    read = {"name": _by_name, "held": _held, "unreported": _unreported}.get(order, _oldest)
    return read(queues, after, limit)


def _live(queue: str) -> Any:
    return conditions.live(JobRun.objects.using(ledger.alias()).filter(queue=queue))


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _oldest(queues: Sequence[str], after: str, limit: int) -> Listed:
    """Queues one after the other would hide the second, so each is read up to the limit and they are merged by id."""
    start = _number(after)
    first: list[tuple[int, Found]] = []
    ends: list[int] = []
    for queue in queues:
        found, end = _oldest_of(queue, start, limit)
        first += found
        ends += [end] if end else []
    first.sort()
    shown = first[:limit]
    if len(first) > limit:
        return Listed([found for _run, found in shown], str(shown[-1][0]))
    return Listed([found for _run, found in shown], str(min(ends)) if ends else "")


def _oldest_of(queue: str, start: int, limit: int) -> tuple[list[tuple[int, Found]], int]:
    """Groups by the ids of their oldest live runs above `start`, and the last id that was read (0: all were)."""
    found: dict[str, tuple[int, Found]] = {}
    after = start
    for _window in range(WINDOWS):
        rows = list(_unseen(queue, start, after)[:WINDOW])
        for run, group, seen in rows:
            if not seen and len(found) < limit:
                found.setdefault(line_name(group, run), (run, (queue, group, 0 if group else run)))
        if len(found) == limit:
            return list(found.values()), max(run for run, _found in found.values())
        if len(rows) < WINDOW:
            return list(found.values()), 0
        after = rows[-1][0]
    return list(found.values()), after


def _unseen(queue: str, start: int, after: int) -> Any:
    """Live rows by id, each with whether an earlier page, which ended at `start`, has shown its group."""
    seen: Any = Value(False)
    if start:
        seen = Exists(_live(queue).filter(group=OuterRef("group"), pk__lte=start).exclude(group=""))
    rows = _live(queue).filter(pk__gt=after).annotate(seen=seen).order_by("pk")
    return rows.values_list("pk", "group", "seen")


def _by_name(queues: Sequence[str], after: str, limit: int) -> Listed:
    """From one name to the next through the index of the lines: a query a group, whatever their backlogs."""
    from_queue, _tab, from_group = after.partition("\t")
    found: list[Found] = []
    for queue in sorted(queues):
        if queue < from_queue:
            continue
        for group in _names(queue, from_group if queue == from_queue else ""):
            if len(found) == limit:
                return Listed(found, f"{found[-1][0]}\t{found[-1][1]}")
            found.append((queue, group, 0))
    return Listed(found)


def _names(queue: str, after: str) -> Iterator[str]:
    while True:
        rows = _live(queue).filter(group__gt=after).order_by("group", "order", "pk")
        name = rows.values_list("group", flat=True).first()
        if name is None:
            return
        yield name
        after = name


def _held(queues: Sequence[str], after: str, limit: int) -> Listed:
    rows = JobGroup.objects.using(ledger.alias()).filter(queue__in=queues, held=True, pk__gt=_number(after))
    page = list(rows.exclude(group="").order_by("pk")[: limit + 1])
    shown = [(row.queue, row.group, 0) for row in page[:limit]]
    return Listed(shown, str(page[limit - 1].pk) if len(page) > limit else "")


def _unreported(queues: Sequence[str], after: str, limit: int) -> Listed:
    rows = conditions.unreported(JobRun.objects.using(ledger.alias()))
    rows = rows.filter(queue__in=queues, pk__gt=_number(after)).order_by("report_after", "pk")
    page = sorted(rows.values_list("pk", "queue", "group")[:WINDOW])[: limit + 1]
    found = {(queue, group, 0 if group else run): None for run, queue, group in page[:limit]}
    return Listed(list(found), str(page[limit - 1][0]) if len(page) > limit else "")


def named(queues: Sequence[str], group: str) -> list[Found]:
    """The group of this name in each queue where it has live runs, is held, or has an abandonment to be reported.

    "#5" is run 5, if that is a group of its own.
    """
    runs = JobRun.objects.using(ledger.alias())
    alone = _number(group.removeprefix("#")) if group.startswith("#") else 0
    if alone and (run := runs.filter(pk=alone, group="", queue__in=queues).values_list("queue", flat=True).first()):
        return [(run, "", alone)]
    held = JobGroup.objects.using(ledger.alias()).filter(group=group, held=True)
    found: list[Found] = []
    for queue in queues:
        unreported = conditions.unreported(runs.filter(queue=queue)).order_by("report_after", "pk")
        known = (_live(queue).filter(group=group), held.filter(queue=queue), unreported.filter(group=group))
        if any(rows.exists() for rows in known):
            found.append((queue, group, 0))
    return found


def starting_with(queues: Sequence[str], text: str, limit: int) -> list[Found]:
    """The group of exactly this name in each queue, live or held, then live groups whose names begin so."""
    found: dict[Found, None] = {}
    for queue in queues:
        held = JobGroup.objects.using(ledger.alias()).filter(queue=queue, group=text, held=True)
        if _live(queue).filter(group=text).exists() or held.exists():
            found[queue, text, 0] = None
    for queue in queues:
        for group in _names(queue, text):
            if not group.startswith(text) or len(found) >= limit:
                break
            found[queue, group, 0] = None
    return list(found)[:limit]
