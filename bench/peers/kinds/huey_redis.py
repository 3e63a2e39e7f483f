"""huey on Redis: no rows, no order, nothing acknowledged."""

import os

from huey import RedisHuey

from bench.peers.handling import did, entering, picked_up

huey = RedisHuey("bench", url=os.environ["REDIS_URL"], results=False)


@huey.task()
def noop(phase, milliseconds):
    did(phase, milliseconds)


@huey.task()
def pick(sent):
    picked_up(sent)


def enqueue(phase, jobs):
    for _, milliseconds in jobs:
        noop(phase, milliseconds)


if __name__ == "__main__":
    from bench.peers.kinds import huey_redis as importable  # noqa: PLW0406 (tasks are named by their module)

    entering(importable.enqueue, lambda sent: importable.pick(sent))
