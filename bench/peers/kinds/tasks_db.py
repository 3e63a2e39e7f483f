"""django-tasks-db: rows in the database, no groups."""

from bench.peers.handling import entering
from bench.peers.kinds import django_settings

if __name__ == "__main__":
    django_settings.ready()
    from django.db import transaction

    from bench.peers.kinds.tasks_db_work import noop, pick

    def enqueue(phase, jobs):
        with transaction.atomic():
            for _, milliseconds in jobs:
                noop.enqueue(phase, milliseconds)

    entering(enqueue, lambda sent: pick.enqueue(sent))
