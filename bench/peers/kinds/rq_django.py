"""django-rq: a worker that forks for each job; results and job hashes in Redis."""

from bench.peers.handling import did, entering, picked_up
from bench.peers.kinds import django_settings

if __name__ == "__main__":
    django_settings.ready()
    import django_rq
    from rq import Queue

    queue = django_rq.get_queue("default")

    def enqueue(phase, jobs):
        for start in range(0, len(jobs), 1000):
            part = jobs[start : start + 1000]
            queue.enqueue_many([Queue.prepare_data(did, args=(phase, ms), result_ttl=500) for _, ms in part])

    entering(enqueue, lambda sent: queue.enqueue(picked_up, sent))
