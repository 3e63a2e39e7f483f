"""The jobs: no-op handlers."""

from celery import shared_task

from groupjobs import job


@job(group="g:{group}")
def noop(group: int) -> None:
    """Nothing, one at a time per group."""


@job(group="g:{group}", atomic=True)
def atomic_noop(group: int) -> None:
    """Nothing, in a transaction of its own with its terminal row."""


@shared_task(name="bench.plain", acks_late=True, ignore_result=True)
def plain(group: int) -> None:
    """Nothing: Celery's own cost of a task."""
