"""Workers that never were: they hold leases, with rows that say RUNNING, and nobody beats for them."""

from __future__ import annotations

import uuid

from bench.world import GaveUp


def opened() -> None:
    """Open the queue of a new Redis without any worker."""
    from bench.world import wait
    from groupjobs import recovery

    wait(lambda: recovery.rebuild("default"), "the queue is open", 0.1)


def reserve(worker: str, consumers: int, each: int) -> dict[str, int]:
    """Reserve and begin `each` runs for each of so many consumers of a worker; answers their nonces and pids."""
    from groupjobs import ledger
    from groupjobs.ledger import Beginning
    from groupjobs.store import Consumer, store_for

    store, nonces = store_for("default"), {}
    for number in range(consumers):
        consumer = Consumer(uuid.uuid4().hex[:16], worker, number + 1)
        taken = store.step(consumer, 1, each).reservations
        rows = ledger.load("default", [found.run for found in taken])
        begun = ledger.begin([Beginning(rows[r.run], r.fence, r.alone, worker, consumer.nonce) for r in taken])
        if len(begun) != each:
            raise GaveUp(f"{len(begun)} of {each} runs begun")
        nonces[consumer.nonce] = consumer.pid
    return nonces
