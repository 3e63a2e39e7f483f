"""The jobs: no-op handlers."""

from celery import shared_task

from bench.peers.handling import did, picked_up
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


@job(group="g:{group}")
def gated(group: int, phase: int, milliseconds: float) -> None:
    """The job of the comparison with other queues."""
    did(phase, milliseconds)


@job
def pick(sent: float) -> None:
    """A job that says how long it waited."""
    picked_up(sent)


TALLY: list[int] = []  # one entry for each run of `tally` in this process


@job(group="g:{group}")
def tally(group: int) -> None:
    """Nothing, counted."""
    TALLY.append(group)
