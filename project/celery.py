"""The Celery application that serves the jobs: `celery -A project worker`."""

from __future__ import annotations

import os

from celery import Celery

import groupjobs

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

app = Celery("project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
groupjobs.install(app)
