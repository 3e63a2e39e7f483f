"""Search of runs: an id, else text in the live runs of a group and in the latest runs, never the whole table."""

from __future__ import annotations

import json
from typing import Any, Final

from django.db.models import Max, Q, QuerySet, TextField
from django.db.models.functions import Cast

from groupjobs import conf
from groupjobs.ledger.conditions import live

WINDOW: Final = 100_000  # ids, from the newest down, in which text is looked for
MOST: Final = 1_000  # matches that a search answers


def search(rows: QuerySet[Any], term: str) -> QuerySet[Any]:
    """Those of `rows` that a person may mean by `term`: at most a thousand from each place it looks at."""
    term = term.strip().replace("\0", "")
    if not term:
        return rows
    number = term.removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) < 19 and rows.filter(pk=number).exists():
        return rows.filter(pk=number)
    plain = rows.model.objects.using(rows.db).order_by("-pk")
    return rows.filter(pk__in={*_live_of_group(plain, term), *_latest(plain, term)})


def latest(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Those of the rows whose ids are among the latest 100,000, newest first."""
    newest = rows.model.objects.using(rows.db).aggregate(newest=Max("pk"))["newest"] or 0
    return rows.filter(pk__gt=newest - WINDOW).order_by("-pk")


def _live_of_group(plain: QuerySet[Any], group: str) -> list[int]:
    found = live(plain.filter(queue__in=list(conf.current().queues), group=group))
    return list(found.values_list("pk", flat=True)[:MOST])


def _latest(plain: QuerySet[Any], term: str) -> list[int]:
    texts = {f"{name}_text": Cast(name, TextField()) for name in _searched_columns()}
    match = Q(group__icontains=term) | Q(job__icontains=term)
    for name in texts:
        for spelling in {term, json.dumps(term)[1:-1]}:
            match |= Q(**{f"{name}__icontains": spelling})
    found = latest(plain).alias(**texts).filter(match)
    return list(found.values_list("pk", flat=True)[:MOST])


def _searched_columns() -> tuple[str, ...]:
    """No payload once something in it is masked: who may search it could guess it letter by letter."""
    return () if conf.current().masked else ("args", "kwargs", "labels")
