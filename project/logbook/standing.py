"""How far an upload has come: what the upload page shows and the demo waits for."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from groupjobs import lifecycle
from groupjobs.models import JobRun
from project.logbook.jobs import log_leg
from project.logbook.models import Leg, Upload

IMPORTING = "importing"
ENTERING = "entering"
FINISHED = "finished"
UNUSABLE = "unusable"
ENDED_BADLY = lifecycle.TERMINAL - {lifecycle.SUCCEEDED}


@dataclass(frozen=True, slots=True)
class Standing:
    """One look at an upload; `rate` is in legs per second, `eta` in seconds, each None while unknown."""

    state: str
    lines: int
    read: int
    legs: int
    entered: int
    failed: int
    refused: int
    problem: str
    rate: float | None
    eta: float | None

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in (FINISHED, UNUSABLE)

    @property
    def percent(self) -> int:
        """Share of the legs that are entered or failed, weighed by how much of the file is read; 0 to 100."""
        if self.over:
            return 100
        share = min(1.0, (self.entered + self.failed) / self.legs) if self.legs else 0.0
        return int(100 * share * self.read / max(self.lines, 1))


def standing(upload: Upload) -> Standing:
    """Look at the rows of an upload."""
    entered = Leg.objects.filter(upload=upload).count()
    failed = _failed(upload)
    problem = upload.problem or _import_failure(upload)
    state = _state(upload, entered + failed, problem)
    rate = _rate(upload, entered) if state == ENTERING else None
    return Standing(
        state=state,
        lines=upload.lines,
        read=min(upload.lines_read, upload.lines),
        legs=upload.legs,
        entered=entered,
        failed=failed,
        refused=upload.refusals.count(),
        problem=problem,
        rate=rate,
        eta=(upload.legs - entered - failed) / rate if rate else None,
    )


def _state(upload: Upload, ended: int, problem: str) -> str:
    if problem:
        return UNUSABLE
    if upload.imported_at is None:
        return IMPORTING
    return FINISHED if ended >= upload.legs else ENTERING


def _failed(upload: Upload) -> int:
    """Legs of this upload whose run ended in anything but success."""
    badly = JobRun.objects.filter(status__in=sorted(ENDED_BADLY), job=log_leg.job_name)
    return badly.filter(kwargs__upload_id=upload.pk).count()


def import_run(upload: Upload) -> JobRun | None:
    """The newest run of this upload's import; None once retention has pruned it."""
    return JobRun.objects.filter(group=upload.group).order_by("-id").first()


def _import_failure(upload: Upload) -> str:
    run = None if upload.imported_at else import_run(upload)
    if run is None or run.status not in ENDED_BADLY:
        return ""
    error = run.error or {}
    return f"the import ended as {run.status}: {error.get('message') or run.reason or 'no reason given'}"


def _rate(upload: Upload, entered: int) -> float | None:
    seconds = (timezone.now() - upload.uploaded_at).total_seconds()
    return entered / seconds if entered and seconds > 0 else None
