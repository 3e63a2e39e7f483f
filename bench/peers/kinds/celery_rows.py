"""Celery, prefork, acks_late, with a row that each task updates twice: it runs, it has succeeded."""

from celery import Celery

from bench.peers.handling import did, entering, picked_up
from bench.peers.kinds import django_settings

django_settings.ready()

from bench.peers.kinds.rows.models import Row  # noqa: E402

app = Celery("bench", broker=django_settings.REDIS_URL)
app.conf.update(task_acks_late=True, task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task(name="noop")
def noop(row, phase, milliseconds):
    Row.objects.filter(pk=row, status="READY").update(status="RUNNING")
    did(phase, milliseconds)
    Row.objects.filter(pk=row, status="RUNNING").update(status="SUCCEEDED")


@app.task(name="pick")
def pick(sent):
    picked_up(sent)


def enqueue(phase, jobs):
    rows = Row.objects.bulk_create([Row(group=group) for group, _ in jobs], batch_size=1000)
    with app.producer_pool.acquire(block=True) as producer:
        for row, (_, milliseconds) in zip(rows, jobs, strict=True):
            noop.apply_async((row.pk, phase, milliseconds), producer=producer)


if __name__ == "__main__":
    entering(enqueue, lambda sent: pick.delay(sent))
