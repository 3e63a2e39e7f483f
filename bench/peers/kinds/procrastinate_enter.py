"""The enqueue side of procrastinate; with "schema", its tables."""

import sys

from procrastinate.jobs import Job

from bench.peers.handling import entering
from bench.peers.kinds.procrastinate_lock import app, pick, sync


def enqueue(phase, jobs):
    made = [
        Job(
            id=None, queue="default", lock=f"g{group}", queueing_lock=None, task_name="noop",
            task_kwargs={"phase": phase, "milliseconds": milliseconds},
        )
        for group, milliseconds in jobs
    ]  # fmt: skip
    for start in range(0, len(made), 1000):
        app.job_manager.batch_defer_jobs(made[start : start + 1000])


if __name__ == "__main__":
    with app.replace_connector(sync) as here, here.open():
        if sys.argv[1:] == ["schema"]:
            here.schema_manager.apply_schema()
        else:
            entering(enqueue, lambda sent: pick.defer(sent=sent))
