"""The tasks of django-tasks-db."""

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task

from bench.peers.handling import did, picked_up


@task
def noop(phase, milliseconds):
    """One job."""
    did(phase, milliseconds)


@task
def pick(sent):
    """One job that says how long it waited."""
    picked_up(sent)
