"""Celery, prefork, acks_late, no rows."""

import os

from celery import Celery

from bench.peers.handling import did, entering, picked_up

app = Celery("bench", broker=os.environ["REDIS_URL"])
app.conf.update(task_acks_late=True, task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task(name="noop")
def noop(phase, milliseconds):
    did(phase, milliseconds)


@app.task(name="pick")
def pick(sent):
    picked_up(sent)


def enqueue(phase, jobs):
    with app.producer_pool.acquire(block=True) as producer:
        for _, milliseconds in jobs:
            noop.apply_async((phase, milliseconds), producer=producer)


if __name__ == "__main__":
    entering(enqueue, lambda sent: pick.delay(sent))
