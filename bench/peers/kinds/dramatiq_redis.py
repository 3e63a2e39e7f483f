"""dramatiq on Redis: no rows, no order."""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers.handling import did, entering, picked_up

dramatiq.set_broker(RedisBroker(url=os.environ["REDIS_URL"]))


@dramatiq.actor
def noop(phase, milliseconds):
    did(phase, milliseconds)


@dramatiq.actor
def pick(sent):
    picked_up(sent)


def enqueue(phase, jobs):
    for _, milliseconds in jobs:
        noop.send(phase, milliseconds)


if __name__ == "__main__":
    entering(enqueue, lambda sent: pick.send(sent))
