"""The scenarios of the protocol's model, walked on the real code; `WALKS=100` walks each so many times."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import override_settings

from groupjobs import bell, recovery
from groupjobs.models import JobRun
from groupjobs.store import store_for
from project.embedded import EmbeddedValkey
from tests.core.rows import QUEUE
from tests.model.actors import Sent, stops
from tests.model.protocol_model import SUITE
from tests.model.walk import Walk

pytestmark = [pytest.mark.django_db(transaction=True)]
WALKS = int(os.environ.get("WALKS", "1"))


@pytest.fixture(autouse=True)
def _nothing_by_itself(valkey: EmbeddedValkey) -> Iterator[None]:
    """No bell, and no beat that is late only because the machine is slow."""
    bell.mute(True)
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "WORKER_TTL": 600}):
        yield
    bell.mute(False)


@pytest.mark.parametrize("seed", range(WALKS))
@pytest.mark.parametrize("name", SUITE)
def test_every_order_of_events_keeps_the_promises(name: str, seed: int) -> None:
    store = store_for(QUEUE)
    assert recovery.rebuild(QUEUE)
    sent: Sent = []
    walk = Walk(SUITE[name], seed, store, sent)
    try:
        with stops(sent):
            walk.go()
        check(walk)
    except BaseException:
        print(*walk.said, sep="\n")
        raise


def check(walk: Walk) -> None:
    rows = [JobRun.objects.get(pk=run) for run in walk.runs]
    scenario = walk.scenario
    for number, row in enumerate(rows):
        poison = number in scenario.poison
        ends = {"ABANDONED"} if poison else {"SUCCEEDED"}
        if number == 0 and "cancel" in scenario.faults:
            ends |= {"CANCELLED"}
        assert row.status in ends, f"{number} {row.status} {row.reason}"
        if row.status == "SUCCEEDED":
            assert row.result == row.fence, f"the outcome of {number} is a late worker's"
        slept = row.attempt_log.filter(outcome="lost", worker__in=[actor.worker for actor in walk.zombies]).count()
        assert row.losses <= walk.deaths[row.pk] + slept, f"{number} has losses that were none"
        if poison:
            begun = walk.begun.count(number)
            assert row.losses == row.max_losses + 1
            assert begun <= row.life * (row.max_losses + 2)
        for life in range(1, row.life + 1):
            good = [actor for actor in walk.ended[row.pk, life] if walk.lives(actor)]
            assert len(good) <= 1, f"{number} ran twice to its end"
    firsts = list(dict.fromkeys(walk.begun))
    for group in set(scenario.groups):
        line = [number for number in firsts if scenario.groups[number] == group]
        assert line == sorted(line), f"begun in the order {line}"
