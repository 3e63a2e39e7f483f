"""A settle that the database ends as the victim of a deadlock is tried again as a whole: nothing is lost or doubled."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from groupjobs import ledger, moves
from groupjobs.consumer.patience import Patience
from groupjobs.ledger import Settlement
from groupjobs.models import JobRun
from groupjobs.store import Store
from tests.core.rows import QUEUE, again, aside, running
from tests.core.serving import never
from tests.jobsapp.models import Written
from tests.servers.waiting import wait_until

several_writers = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")

WAITS = {
    "postgresql": "select count(*) from pg_locks where not granted",
    "mysql": "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'",
}
# The other transaction must not be the victim: it is patient, or it has written more.
SPARED = {"postgresql": "set local deadlock_timeout = '60s'", "mysql": "select 1"}


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITS[connection.vendor])
        return bool(cursor.fetchone()[0])


@several_writers
def test_a_settle_that_deadlocks_is_tried_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = running(40), running(41, group="h")
    rows = ledger.load(QUEUE, [first.pk, second.pk])
    items = [(rows[run.pk], Settlement(run.pk, run.fence, "succeed", result="5")) for run in (first, second)]
    tries: list[str] = []
    real = ledger.settle

    def noted(settlements: Any) -> Any:
        tries.append("settle")
        try:
            return real(settlements)
        except OperationalError:
            tries.append("deadlock")
            raise

    monkeypatch.setattr(ledger, "settle", noted)
    patience = Patience(never)
    settled = threading.Thread(target=lambda: aside(lambda: patience.database(lambda: moves.settle(QUEUE, items))))
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(SPARED[connection.vendor])
        Written.objects.bulk_create([Written(label="", run=0, fence=0) for _ in range(100)])
        JobRun.objects.select_for_update().get(pk=second.pk)
        settled.start()
        wait_until(somebody_waits, what="the settle has the first row and waits for the second")
        JobRun.objects.select_for_update().get(pk=first.pk)
    settled.join(20)
    assert tries == ["settle", "deadlock", "settle"]
    assert [(again(run).status, again(run).result, again(run).attempts) for run in (first, second)] == [
        ("SUCCEEDED", 5, 1)
    ] * 2
