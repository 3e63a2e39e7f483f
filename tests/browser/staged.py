"""Something to see on every page: rows and leases in each state that the pages tell of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from groupjobs import control
from groupjobs.models import JobAttempt, JobProgress, JobRun
from groupjobs.moves import publish
from groupjobs.store import Store
from project.demo.desk import Desk
from project.logbook import entering, importing, views
from project.logbook.jobs import log_leg
from project.logbook.models import Leg, Upload

FLIGHTS = Path(__file__).parents[2] / "project" / "data" / "flights_2013_w1.csv"
RUNS = "/admin/groupjobs/jobrun/"
GROUPS = "/admin/groupjobs/jobgroup/"
TRACEBACK = """Traceback (most recent call last):
  File "project/logbook/jobs.py", line 24, in log_leg
    entering.enter(upload_id, tail, flight)
  File "project/logbook/entering.py", line 23, in enter
    leg.running_miles = aircraft.miles + leg.miles
TypeError: unsupported operand type(s) for +: 'int' and 'str'
"""
STORY = {
    "own_redis": True,
    "workers": [{"pid": 4121, "ready": True}, {"pid": 4377, "ready": False}],
    "faults": [
        {"number": 2, "damage": "flush", "runs": 3784, "freed": None, "again": None, "over": False, "successor": 0},
        {
            "number": 1,
            "damage": "kill",
            "pid": 4118,
            "runs": 7,
            "freed": 0.0612,
            "again": 1.42,
            "over": True,
            "successor": 4377,
        },
    ],
}

Reserve = Callable[[JobRun], int]


@dataclass
class Staged:
    """Addresses by name; `questions` are pages behind a button: address and the button's name."""

    pages: dict[str, str] = field(default_factory=dict)
    questions: dict[str, tuple[str, str]] = field(default_factory=dict)


def stage_everything(make_run: Callable[..., JobRun], reserve: Reserve, store: Store, desk: Path) -> Staged:
    """Make it all; the pages of the demo tell a story from `desk`."""
    staged = Staged()
    _past()
    _runs(staged, make_run, reserve, store)
    _groups(staged, make_run)
    _logbook(staged)
    Desk(desk).tell(STORY)
    staged.pages.update(
        {"index": "/admin/", "runs": RUNS, "runs-failed": f"{RUNS}?status=FAILED", "runs-none": f"{RUNS}?q=nothing"}
    )
    staged.pages.update({"groups": GROUPS, "queues": f"{GROUPS}queues/", "drift": f"{RUNS}drift/"})
    return staged


def _past() -> None:
    """An hour of runs that ended, for the charts."""
    now = timezone.now()
    rows = []
    for number in range(360):
        finished = now - timedelta(seconds=90 + 10 * number)
        begun = finished - timedelta(seconds=1 + number % 5)
        rows.append(
            JobRun(
                queue="default",
                group=f"aircraft:N{14000 + number % 40}",
                job="project.logbook.jobs.log_leg",
                status="FAILED" if number % 23 == 7 else "SUCCEEDED",
                attempts=1,
                finished_at=finished,
                started_at=begun,
                last_attempted_at=begun,
                enqueued_at=begun - timedelta(seconds=(number * 7) % 50),
            )
        )
    JobRun.objects.bulk_create(rows)


def _runs(staged: Staged, make_run: Callable[..., JobRun], reserve: Reserve, store: Store) -> None:
    now = timezone.now()
    flight = {"line": 7, "date": "2013-01-01", "carrier": "UA", "flight": "1545", "origin": "EWR", "dest": "IAH"}
    shown = {"kwargs": {"upload_id": 3, "tail": "N619AA", "flight": flight}, "labels": {"tenant": "united"}}
    failed = make_run(
        "FAILED", group="aircraft:N619AA", attempts=2, max_attempts=2, losses=1, started_at=now, **shown,
        error={"class": "builtins.TypeError", "message": "unsupported operand type(s) for +: 'int' and 'str'"},
    )  # fmt: skip
    for fence, outcome in ((11, "lost"), (12, "failed"), (13, "failed")):
        told = {"error_class": "builtins.TypeError", "message": "unsupported operand", "traceback": TRACEBACK}
        JobAttempt.objects.create(
            run=failed, fence=fence, outcome=outcome, worker="celery@logbook-7d9f4:4118:c0ffee", started_at=now,
            finished_at=now, **(told if outcome == "failed" else {}),
        )  # fmt: skip
    running, ghost = make_run(group="file:17"), make_run(group="aircraft:N730MQ")
    reserve(running)
    reserve(ghost)
    JobRun.objects.filter(pk=running.pk).update(job="project.logbook.jobs.import_flights", attempts=1)
    JobProgress.objects.filter(run=running).update(
        done=4000, total=6092, message="line 4000 of 6092", phase="reading", updated_at=now + timedelta(seconds=20)
    )
    store.client.zrem(f"{store.base}:workers", ghost.worker)
    abandoned = make_run("ABANDONED", reason="too_many_losses", group="aircraft:N804JB", losses=3, report_attempts=10)
    for name, run in {"failed": failed, "running": running, "ghost": ghost, "abandoned": abandoned}.items():
        staged.pages[f"run-{name}"] = f"{RUNS}{run.pk}/change/"
    staged.pages["history"] = f"{RUNS}{failed.pk}/history/"
    staged.questions["confirm-retry"] = (staged.pages["run-failed"], "retry")
    staged.questions["confirm-cancel"] = (staged.pages["run-ghost"], "cancel")


def _groups(staged: Staged, make_run: Callable[..., JobRun]) -> None:
    held = [make_run(group="aircraft:N14228") for _ in range(4)]
    later = timezone.now() + timedelta(minutes=10)
    backing_off = make_run(group="invoice:2013-000817", run_after=later, failures=1, attempts=1, max_attempts=5)
    long = make_run(
        group="tenant:a-very-long-name-that-somebody-chose/region:eu-central-1/document:00000000-1111-2222-3333",
        job="billing.statements.monthly.reconciliation.post_statement_to_general_ledger",
    )
    scheduled = make_run(group="report:daily", run_after=timezone.now() + timedelta(hours=5), yields=True)
    publish([*held, backing_off, long, scheduled])
    control.hold("default", "aircraft:N14228", f"after_failure=hold: run {held[0].pk} ended", "anna")
    make_run(group="mail:welcome", unpublished=True)
    for name, group in {"held": "aircraft:N14228", "backing-off": "invoice:2013-000817"}.items():
        staged.pages[f"group-{name}"] = f"{GROUPS}group/?queue=default&group={group}"
    staged.questions["question"] = (staged.pages["group-held"], "skip")


def _logbook(staged: Staged) -> None:
    lines = FLIGHTS.read_bytes().splitlines(keepends=True)
    bad = b"2013-01-01,0529,UA,1714\n2013-13-01,0545,B6,725,N804JB,JFK,BQN,1576,183\n"
    finished = _upload("flights.csv", b"".join(lines[:40]) + bad)
    for run in JobRun.objects.filter(job=log_leg.job_name, status="READY", kwargs__upload_id=finished.pk):
        entering.enter(**run.kwargs)
    JobRun.objects.filter(kwargs__upload_id=finished.pk).update(status="SUCCEEDED", finished_at=timezone.now())
    now = _upload("a-file-with-quite-a-long-name-of-flights-2013-w1-corrected-final.csv", b"".join(lines[:120]))
    for run in JobRun.objects.filter(job=log_leg.job_name, kwargs__upload_id=now.pk).order_by("pk")[:70]:
        entering.enter(**run.kwargs)
    unusable = _upload("nonsense.csv", b"a,b\n1,2\n")
    for name, upload in {"finished": finished, "entering": now, "unusable": unusable}.items():
        staged.pages[f"demo-upload-{name}"] = f"/uploads/{upload.pk}/"
    tail = Leg.objects.order_by("-number").values_list("aircraft__tail", flat=True)[0]
    staged.pages.update({"demo-home": "/", "demo-fleet": "/aircraft/", "demo-logbook": f"/aircraft/{tail}/"})


def _upload(name: str, content: bytes) -> Upload:
    made = views.save_upload(SimpleUploadedFile(name, content))
    importing.import_upload(made.pk, log_leg.enqueue_many, lambda line, lines: None)
    return made
