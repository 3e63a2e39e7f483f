"""The jobs of the logbook: read a file, enter a leg."""

from __future__ import annotations

from typing import Any

from groupjobs import job
from project.logbook import entering, importing


@job(group="file:{upload_id}", takes_context=True)
def import_flights(context: Any, upload_id: int) -> dict[str, int]:
    """Check every line of an uploaded file and enqueue one `log_leg` for each leg."""

    def report(line: int, lines: int) -> None:
        context.progress(done=line, total=lines, message=f"line {line} of {lines}")

    return importing.import_upload(upload_id, log_leg.enqueue_many, report)


@job(group="aircraft:{tail}", atomic=True)
def log_leg(upload_id: int, tail: str, flight: dict[str, Any]) -> None:
    """Enter a leg at the end of the logbook of the aircraft `tail`."""
    entering.enter(upload_id, tail, flight)
