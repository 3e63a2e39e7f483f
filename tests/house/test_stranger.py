"""A project of somebody else: its own Celery app, user model, two databases with a router, and both kinds of time."""

from __future__ import annotations

import json

import pytest

from tests.house.stranger import Stranger

pytestmark = [pytest.mark.celery, pytest.mark.slow, pytest.mark.timeout(600)]

SETTINGS = """
import django, os

INSTALLED_APPS += ["people", "work", "groupjobs"] + ([] if django.VERSION >= (6, 0) else ["django_tasks"])
AUTH_USER_MODEL = "people.Person"
ALLOWED_HOSTS = ["testserver"]
USE_TZ = os.environ["USE_TZ"] == "1"
TIME_ZONE = "Pacific/Auckland"
SQLITE = {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20}}
DATABASES = {name: {**SQLITE, "NAME": BASE_DIR / f"{name}{USE_TZ}.sqlite3"} for name in ("default", "second")}
DATABASE_ROUTERS = ["site_.router.Router"]
JOBS_DATABASE = os.environ["JOBS_DATABASE"]
GROUPJOBS = {
    "REDIS": os.environ["REDIS_URL"] + "/1",
    "DATABASE": JOBS_DATABASE,
    "QUEUES": {"default": {"celery_queue": "grouped"}},
}
CELERY_BROKER_URL = os.environ["REDIS_URL"] + "/0"
CELERY_TIMEZONE = "America/Lima"
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_TIME_LIMIT = 1
CELERY_TASK_DEFAULT_QUEUE = "others"
"""
ROUTER = """
from django.conf import settings

class Router:
    def allow_migrate(self, db, app_label, **hints):
        return db == (settings.JOBS_DATABASE if app_label == "groupjobs" else "default")
"""
CELERY = """
import os
from celery import Celery
import groupjobs

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_.settings")
app = Celery("site")
groupjobs.install(app)
app.config_from_object("django.conf:settings", namespace="CELERY")
"""
PERSON = """
from django.contrib.auth.models import AbstractUser

class Person(AbstractUser):
    pass
"""
JOBS = """
import datetime, time
from groupjobs import job

@job(group="person:{person}", takes_context=True, max_attempts=2, backoff=0)
def greet(context, person: int, at: str) -> str:
    time.sleep(0.3)
    if context.attempt == 1 and person == 2:
        raise ValueError("not yet")
    return f"{person} at {at}"
"""
ENQUEUE = """
import datetime as dt
from django.db import transaction
from django.utils import timezone
from people.models import Person
from work.jobs import greet
from django.conf import settings

Person.objects.create_superuser("ann", "ann@example.org", "secret")
with transaction.atomic(using=settings.JOBS_DATABASE):
    for person in (1, 2):
        for hour in (8, 9):
            greet.enqueue(person=person, at=f"{hour}:00")
soon = timezone.now() + dt.timedelta(seconds=1)
greet.using(run_after=soon, expires=600).enqueue(3, at="later")
try:
    with transaction.atomic(using=settings.JOBS_DATABASE):
        greet.enqueue(4, at="never")
        raise KeyError
except KeyError:
    pass
"""
LOOK = """
import json
import groupjobs
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from groupjobs.models import JobAttempt, JobRun
from people.models import Person
from work.jobs import greet

runs = JobRun.objects.using(settings.JOBS_DATABASE)
ids = list(runs.order_by("pk").values_list("pk", flat=True))
ended = [groupjobs.wait(greet.get_result(str(pk)), timeout=60) for pk in ids]
client = Client()
client.force_login(Person.objects.get())
first = runs.order_by("pk").first()
pages = [f"/admin/groupjobs/jobrun/{path}" for path in ("", f"{first.pk}/change/")]
now = timezone.now()
print(json.dumps({
    "ended": [[r.kwargs.get("person", r.args and r.args[0]), r.status, r.attempts] for r in ended],
    "ages": all(0 <= (now - r.finished_at).total_seconds() < 600 for r in ended),
    "order": [r.kwargs["at"] for r in sorted(ended[:2], key=lambda r: r.started_at)],
    "later": (ended[4].started_at - ended[4].enqueued_at).total_seconds() > 0.7,
    "attempts": JobAttempt.objects.using(settings.JOBS_DATABASE).count(),
    "pages": [b"person:1" in client.get(page).content for page in pages],
}))
"""


def test_groupjobs_moves_into_a_project_of_somebody_else(stranger: Stranger) -> None:
    stranger.bash("pip install --quiet groupjobs && django-admin startproject site_ .")
    stranger.bash("python manage.py startapp people && python manage.py startapp work")
    for name, text in {"router": ROUTER, "celery": CELERY}.items():
        (stranger.folder / f"site_/{name}.py").write_text(text)
    (stranger.folder / "site_/__init__.py").write_text("from site_.celery import app as celery_app\n")
    (stranger.folder / "people/models.py").write_text(PERSON)
    (stranger.folder / "work/jobs.py").write_text(JOBS)
    (stranger.folder / "enqueue.py").write_text(ENQUEUE)
    (stranger.folder / "look.py").write_text(LOOK)
    with (stranger.folder / "site_/settings.py").open("a") as settings:
        settings.write(SETTINGS)
    for use_tz, database in (("1", "second"), ("0", "default")):
        stranger.env |= {"USE_TZ": use_tz, "JOBS_DATABASE": database}
        _works(stranger, database)


def _works(stranger: Stranger, database: str) -> None:
    made = stranger.bash("""
        python manage.py makemigrations people
        for database in default second; do python manage.py migrate --database $database -v 0 2>&1; done
    """)
    assert ("(groupjobs.W005)" in made) == (database == "second")
    shown = stranger.bash("""
        python manage.py shell < enqueue.py
        celery -A site_ worker --queues grouped,others --concurrency 2 > worker.log 2>&1 &
        trap 'kill -9 %1 2> /dev/null || true' EXIT
        python manage.py shell < look.py || { cat worker.log; exit 1; }
        python manage.py recover_ghosts --json
        kill %1; wait %1
    """)
    seen, recovered = (json.loads(line) for line in shown.splitlines() if line.startswith("{"))
    assert seen == {
        "ended": [[1, "SUCCESSFUL", 1]] * 2 + [[2, "SUCCESSFUL", 2]] * 2 + [[3, "SUCCESSFUL", 1]],
        "ages": True,
        "order": ["8:00", "9:00"],
        "later": True,
        "attempts": 2,
        "pages": [True, True],
    }
    assert recovered["queues"] == ["default"]
    assert [recovered[name] for name in ("requeued", "abandoned", "republished", "dropped", "refused")] == [0] * 5
