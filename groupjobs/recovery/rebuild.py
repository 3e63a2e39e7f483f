"""Rebuild a queue whose Redis lost its memory, from rows: living leases first, then the lines in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from groupjobs import conf, ledger, lifecycle, moves
from groupjobs.store import EpochChanged, Lease, Store, store_for
from groupjobs.store.keys import line_name
from groupjobs.store.replies import Entry

if TYPE_CHECKING:
    from groupjobs.models import JobRun

PAGE: Final = 250
DUTY: Final = "rebuild"
ABSENT: Final = 1.0  # seconds after which one that publishes and says nothing is no longer waited for


def rebuild(queue: str) -> bool:
    """Carry the rebuild of a queue as far as it can go now; True when the queue is open.

    It takes one whole TTL of the queue's own clock, so that every living worker has told what it
    holds; call again until then. A queue that was never opened, as its rows know, has nobody who could
    hold anything, and opens at once. Safe from many processes at once: one of them publishes the rows.
    """
    store = store_for(queue)
    told = store.snapshot([])
    if told.state != "rebuild":
        return told.state in ("open", "paused")
    try:
        return _rebuild(store, queue, told.epoch, told.rebuilding_ms)
    except EpochChanged:
        return False


def _rebuild(store: Store, queue: str, epoch: str, age_ms: int) -> bool:
    _restore(store, queue, epoch)
    if age_ms < conf.current().worker_ttl * 1000 and ledger.was_opened(queue):
        return False
    if not store.turn(DUTY, ABSENT):
        return False
    try:
        return _publish(store, queue, epoch)
    finally:
        store.end_turn(DUTY)


def _publish(store: Store, queue: str, epoch: str) -> bool:
    ledger.mark_opened(queue)
    for page in _pages(lambda after: ledger.running_page(queue, after, PAGE)):
        store.keep_turn(DUTY, ABSENT)
        _settle_the_lost(store, page)
    for page in _pages(lambda after: ledger.live_page(queue, after, PAGE)):
        store.keep_turn(DUTY, ABSENT)
        waiting = [run for run in page if run.status == lifecycle.READY]
        store.enqueue([moves.publication(run) for run in waiting], epoch=epoch)
        ledger.flag_unpublished([run.pk for run in waiting if run.unpublished], False)
    moves.mirror_groups(queue)
    return store.open(epoch)


def _pages(read: Callable[[int], list[JobRun]]) -> Iterator[list[JobRun]]:
    after = 0
    while page := read(after):
        yield page
        after = page[-1].pk


def _restore(store: Store, queue: str, epoch: str) -> None:
    """Put back the leases of consumers that a living watchdog lists."""
    for page in _pages(lambda after: ledger.running_page(queue, after, PAGE)):
        store.restore(epoch, [(lease_of(run), run.consumer, run.worker) for run in page])


def lease_of(run: JobRun) -> Lease:
    """The lease that a RUNNING row stands for."""
    return Lease(run.pk, line_name(run.group, run.pk), run.order, run.life, run.fence, int(run.alone))


def _settle_the_lost(store: Store, page: Sequence[JobRun]) -> None:
    """RUNNING without a living lease after a whole TTL is a loss; guarded by the fence that was read."""
    entries = store.snapshot([(run.pk, line_name(run.group, run.pk)) for run in page]).entries
    lost = [run for run in page if not _lives(run, entries.get(run.pk))]
    moves.lose_all(lost, reason="Redis lost its memory, and its worker is gone")


def _lives(run: JobRun, entry: Entry | None) -> bool:
    return entry is not None and entry.place == "leased" and not entry.ghost and entry.fence >= run.fence
