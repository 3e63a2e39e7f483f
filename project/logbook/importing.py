"""The import of a file: check its lines, and enqueue its legs exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from project.logbook import flights
from project.logbook.flights import BadLine, Flight
from project.logbook.models import Refusal, Upload

STEP = 1000

Enqueue = Callable[[Sequence[dict[str, Any]]], object]
Report = Callable[[int, int], None]


class Overtaken(RuntimeError):
    """Another execution of the same import went on from here; this one must not."""


def import_upload(upload_id: int, enqueue: Enqueue, report: Report) -> dict[str, int]:
    """Read the file from where its import stands, a thousand lines a transaction.

    A second execution, after a crash or beside this one, enqueues no leg twice. A file that is no
    list of flights gets its `problem` set. Returns the counts of legs and of refused lines.
    """
    upload = Upload.objects.get(pk=upload_id)
    try:
        for step in _steps(flights.read(bytes(upload.content), after=upload.lines_read)):
            _take(upload, step, enqueue)
            report(step[-1].line, upload.lines)
    except flights.FileRefused as refused:
        upload.problem = str(refused)
    return _finish(upload)


def _steps(lines: Iterable[Flight | BadLine]) -> Iterator[list[Flight | BadLine]]:
    iterator = iter(lines)
    while step := list(islice(iterator, STEP)):
        yield step


def _take(upload: Upload, step: Sequence[Flight | BadLine], enqueue: Enqueue) -> None:
    legs = [line for line in step if isinstance(line, Flight)]
    bad = [line for line in step if isinstance(line, BadLine)]
    last = step[-1].line
    with transaction.atomic():
        # Compare and move first: it holds the row until the commit, so of two executions one waits, then fails.
        here = Upload.objects.filter(pk=upload.pk, lines_read=upload.lines_read)
        if not here.update(lines_read=last, legs=F("legs") + len(legs)):
            raise Overtaken(f"another import of upload {upload.pk} went on behind line {upload.lines_read}")
        Refusal.objects.bulk_create([Refusal(upload=upload, line=line.line, message=line.message) for line in bad])
        if legs:
            enqueue([arguments(upload.pk, leg) for leg in legs])
    upload.lines_read = last


def arguments(upload_id: int, leg: Flight) -> dict[str, Any]:
    """The arguments of `log_leg` for one leg of the file."""
    flight = {
        "line": leg.line,
        "date": leg.date,
        "departure": leg.departure,
        "carrier": leg.carrier,
        "flight": leg.number,
        "origin": leg.origin,
        "dest": leg.dest,
        "miles": leg.miles,
        "minutes": leg.minutes,
    }
    return {"upload_id": upload_id, "tail": leg.tail, "flight": flight}


def _finish(upload: Upload) -> dict[str, int]:
    refused = upload.refusals.count()
    upload.refresh_from_db(fields=["legs"])
    if not upload.legs and not upload.problem:
        upload.problem = f"no valid line ({refused} refused)" if refused else "no line below the header"
    upload.imported_at = timezone.now()
    upload.save(update_fields=["problem", "imported_at"])
    return {"legs": upload.legs, "refused": refused}
