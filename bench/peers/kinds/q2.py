"""django-q2: Redis as its broker, results in the database."""

from bench.peers.handling import entering
from bench.peers.kinds import django_settings

if __name__ == "__main__":
    django_settings.ready()
    from django_q.brokers import get_broker
    from django_q.tasks import async_task

    broker = get_broker()

    def enqueue(phase, jobs):
        for _, milliseconds in jobs:
            async_task("bench.peers.handling.did", phase, milliseconds, broker=broker)

    entering(enqueue, lambda sent: async_task("bench.peers.handling.picked_up", sent, broker=broker))
