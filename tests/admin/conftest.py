"""Rows, leases and people for the pages of the admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from groupjobs.lifecycle import TERMINAL
from groupjobs.models import JobProgress, JobRun
from groupjobs.moves import publish
from groupjobs.store import Consumer, Store, store_for

MakeRun = Callable[..., JobRun]


class Staff(Protocol):
    """A client logged in as a person of the staff with these permissions of groupjobs."""

    def __call__(self, *permissions: str, csrf: bool = False) -> Client:
        """Log somebody in."""


@pytest.fixture(autouse=True)
def _rows(db: None) -> None:
    """Every page reads rows."""


@pytest.fixture
def staff() -> Staff:
    """Makes people with exactly these permissions."""

    def login(*permissions: str, csrf: bool = False) -> Client:
        user = User.objects.create_user(f"user{User.objects.count()}", is_staff=True)
        for name in permissions:
            user.user_permissions.add(Permission.objects.get(codename=name, content_type__app_label="groupjobs"))
        client = Client(enforce_csrf_checks=csrf)
        client.force_login(user)
        return client

    return login


@pytest.fixture
def boss() -> Client:
    """A superuser's client."""
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


@pytest.fixture
def store() -> Store:
    """The open queue "default"."""
    made = store_for("default")
    made.open(made.tick("nobody:1:a", 0).epoch)
    return made


@pytest.fixture
def make_run() -> MakeRun:
    """Makes a row with its progress; nothing is published."""

    def make(status: str = "READY", **columns: Any) -> JobRun:
        ended = {"finished_at": timezone.now()} if status in TERMINAL else {}
        values = {"queue": "default", "group": "g", "job": "project.logbook.jobs.log_leg", **ended, **columns}
        run = JobRun.objects.create(status=status, **values)
        JobProgress.objects.create(run=run)
        return run

    return make


@pytest.fixture
def reserve(store: Store) -> Callable[[JobRun], int]:
    """Publishes a run and lets a consumer of a worker that beats reserve and begin it; answers the fence."""
    count = iter(range(1, 1000))

    def reserved(run: JobRun) -> int:
        publish([run])
        number = next(count)
        consumer = Consumer(f"nonce{number}", f"host:{number}:a", number)
        store.beat(consumer.worker, 1, {consumer.nonce: number})
        (reservation,) = store.step(consumer, 1, 1, []).reservations
        assert reservation.run == run.pk
        JobRun.objects.filter(pk=run.pk).update(
            status="RUNNING",
            fence=reservation.fence,
            alone=reservation.alone,
            worker=consumer.worker,
            consumer=consumer.nonce,
            started_at=timezone.now(),
            last_attempted_at=timezone.now(),
        )
        run.refresh_from_db()
        return reservation.fence

    return reserved
