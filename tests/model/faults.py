"""What a walk may suffer, by the names of the scenarios."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from groupjobs import control, recovery
from tests.core.rows import QUEUE
from tests.model.actors import Actor

if TYPE_CHECKING:
    from tests.model.walk import Walk


def kill(walk: Walk) -> None:
    """A worker dies, and nobody says so."""
    worker = walk.random.choice(walk.workers)
    if worker.actor and not worker.paused:
        walk.die(worker.actor, seen=False)
        walk.silence(worker)
        worker.reborn()


def child(walk: Walk) -> None:
    """A child of a pool dies."""
    actor = walk.random.choice(walk.workers).actor
    if actor and not actor.ended:
        walk.die(actor)


def pause(walk: Walk) -> None:
    """A worker stands still for longer than the TTL."""
    worker = walk.random.choice(walk.workers)
    if worker.actor and not worker.actor.ended:
        worker.paused = worker.zombie = True
        walk.zombies.append(worker.actor)
        walk.silence(worker)


def flush(walk: Walk) -> None:
    """Redis forgets everything."""
    walk.store.client.flushdb()


def remember(walk: Walk) -> None:
    """A snapshot, from which a restart may come."""
    client = walk.store.client
    walk.older = {key: client.dump(key) for key in client.keys("*")}


def restore(walk: Walk) -> None:
    """Another server, which remembers something older."""
    if walk.older is None:
        remember(walk)
    client = walk.store.client
    client.flushdb()
    for key, value in (walk.older or {}).items():
        client.restore(key, 0, value)
    client.hset(f"{walk.store.base}:epoch", "server", "0" * 40)


def lose(walk: Walk) -> None:
    """The next replies are lost, and the calls sent again."""
    for worker in walk.workers:
        if worker.actor:
            worker.actor.resend = True


def late(walk: Walk) -> None:
    """A copy of an earlier step runs only now."""
    if walk.sent:
        store, verb, args = walk.random.choice(walk.sent)
        store.call(verb, *args)


def double(walk: Walk) -> None:
    """Both workers hear of one bell."""
    walk.ring()
    walk.ring()


def cancel(walk: Walk) -> None:
    """Somebody cancels the first run."""
    walk.others.append(Actor(partial(control.cancel, walk.runs[:1])))


def retry(walk: Walk) -> None:
    """Somebody retries the first run."""
    walk.others.append(Actor(partial(control.retry, walk.runs[:1])))


def hold(walk: Walk) -> None:
    """Somebody holds the first group, and opens it."""
    opens = any(deed == "hold" for deed in walk.said[:-1])
    walk.others.append(Actor(partial(control.resume if opens else control.hold, QUEUE, "g0")))


def recover(walk: Walk) -> None:
    """A recovery begins."""
    walk.others.append(Actor(recovery.recover))


FAULTS: dict[str, Callable[[Walk], None]] = {
    fault.__name__: fault
    for fault in (kill, child, pause, flush, restore, lose, late, double, cancel, retry, hold, recover)
}
