"""What the demo reads from the database: legs, runs, and what still stands in the way."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Max, Min

from groupjobs import lifecycle
from groupjobs.models import JobRun
from project.demo.verify import Entered
from project.logbook.jobs import log_leg
from project.logbook.models import Aircraft, Leg, Refusal, Upload


@dataclass(frozen=True, slots=True)
class Runs:
    """The `log_leg` runs of one upload; `seconds` from the import's start to the last finish."""

    runs: int
    groups: int
    seconds: float
    not_succeeded: tuple[str, ...]


def import_run(upload_id: int) -> JobRun:
    """The run that imports the upload."""
    return JobRun.objects.filter(group=Upload(pk=upload_id).group).latest("id")


def leg_runs(upload_id: int) -> list[JobRun]:
    """All `log_leg` runs of the upload, in the order they were enqueued."""
    later = JobRun.objects.filter(id__gt=import_run(upload_id).pk, job=log_leg.job_name)
    found = later.only("group", "kwargs", "status", "reason", "error", "finished_at").order_by("id")
    return [run for run in found.iterator() if run.kwargs.get("upload_id") == upload_id]


def runs(upload_id: int) -> Runs:
    """Count the upload's runs, and name those that did not succeed."""
    found = leg_runs(upload_id)
    start = import_run(upload_id).started_at
    ends = [run.finished_at for run in found if run.finished_at is not None]
    return Runs(
        runs=len(found),
        groups=len({run.group for run in found}),
        seconds=(max(ends) - start).total_seconds() if ends and start else 0.0,
        not_succeeded=tuple(_ending(run) for run in found if run.status != lifecycle.SUCCEEDED),
    )


def _ending(run: JobRun) -> str:
    error = (run.error or {}).get("message", "")
    return f"run {run.pk} of {run.group} is {run.status} {run.reason} {error}".rstrip()


def live(upload_id: int) -> int:
    """Runs, the import's too, that have not reached an end."""
    later = JobRun.objects.filter(id__gte=import_run(upload_id).pk, status__in=sorted(lifecycle.LIVE))
    return later.count()


def refused(upload_id: int) -> dict[int, str]:
    """The lines that the import refused, with its messages."""
    return dict(Refusal.objects.filter(upload_id=upload_id).order_by("line").values_list("line", "message"))


def logbooks(upload_id: int) -> dict[str, list[Entered]]:
    """The whole logbook of every aircraft that has a leg of the upload."""
    fleet = Aircraft.objects.filter(entries__upload_id=upload_id)
    legs = Leg.objects.filter(aircraft__in=fleet).select_related("aircraft").order_by("aircraft__tail", "number", "id")
    found: dict[str, list[Entered]] = {}
    for leg in legs.iterator():
        text = None if leg.upload_id == upload_id else leg.text
        entered = Entered(leg.line, leg.number, leg.miles, leg.running_miles, leg.chain, text)
        found.setdefault(leg.aircraft.tail, []).append(entered)
    return found


def begun_by(pid: int, upload_id: int) -> bool:
    """Whether the worker with this process id has begun a run of the upload."""
    return JobRun.objects.filter(id__gte=import_run(upload_id).pk, worker__contains=f":{pid}:").exists()


def begun_above(fence: int, upload_id: int) -> bool:
    """Whether a run of the upload has begun under a fence above this one."""
    return JobRun.objects.filter(id__gte=import_run(upload_id).pk, fence__gt=fence).exists()


def state_of_affairs() -> str:
    """Status counts and the oldest live runs: what a person needs to see when nothing moves."""
    counts = JobRun.objects.values("job", "status").annotate(count=Count("id"), oldest=Min("id"), newest=Max("id"))
    oldest = JobRun.objects.filter(status__in=sorted(lifecycle.LIVE)).order_by("id")[:5]
    return "\n".join(
        [
            "runs by job and status:",
            *("  {job} {status}: {count} (ids {oldest} to {newest})".format(**row) for row in counts.order_by("job")),
            f"unpublished: {JobRun.objects.filter(unpublished=True).count()}",
            "oldest live runs:",
            *(f"  {run.pk} {run.group} {run.status} {run.reason} fence {run.fence} {run.worker}" for run in oldest),
        ]
    )
