"""The longest script calls while thousands of leases of the dead are healed, and while Redis is rebuilt."""

from __future__ import annotations

import hashlib
from typing import Any

from bench.recovery.dead import opened, reserve
from bench.recovery.fleet import Fleet
from bench.world import GaveUp, wait
from project.embedded import EmbeddedValkey

WORKERS, CONSUMERS = 4, 5
SHORTEST = 200  # microseconds: shorter calls are not noted

Longest = dict[str, float]  # verb -> milliseconds


def healed(fleet: Fleet, valkey: EmbeddedValkey, leases: int) -> Longest:
    """Leases of workers that fall silent are healed by two that live, which then run all of them."""
    _enqueue("healed", leases)
    opened()
    _reserve(leases)
    return _served(fleet, valkey, leases)


def rebuilt(fleet: Fleet, valkey: EmbeddedValkey, leases: int) -> Longest:
    """As many leases of the dead and as many waiting runs, and then Redis is emptied."""
    _enqueue("leased", leases)
    opened()
    _reserve(leases)
    _enqueue("waiting", leases)
    valkey.flush()
    return _served(fleet, valkey, 2 * leases)


def _enqueue(name: str, count: int) -> None:
    from bench.work import jobs

    jobs.named.enqueue_many([{"group": f"{name}-{number}"} for number in range(count)])


def _reserve(leases: int) -> None:
    for number in range(WORKERS):
        reserve(f"dead:{number + 1}:bench", CONSUMERS, leases // (WORKERS * CONSUMERS))


def _served(fleet: Fleet, valkey: EmbeddedValkey, runs: int) -> Longest:
    from groupjobs.models import JobRun

    client: Any = valkey.client()
    client.config_set("slowlog-max-len", 1_000_000)
    client.config_set("slowlog-log-slower-than", SHORTEST)
    client.slowlog_reset()
    fleet.launch(2)
    wait(lambda: not JobRun.objects.filter(status__in=["READY", "RUNNING"]).exists(), "all runs have ended", 0.2)
    if (done := JobRun.objects.filter(status="SUCCEEDED").count()) != runs:
        raise GaveUp(f"{done} of {runs} runs succeeded")
    JobRun.objects.all().delete()
    return longest(client)


def longest(client: Any) -> Longest:
    """The longest call of each script since the log was emptied, by the server's own clock."""
    from groupjobs.store.scripts import VERBS, source

    names = {hashlib.sha1(source(verb).encode()).hexdigest(): verb for verb in VERBS}  # noqa: S324
    found: Longest = {}
    for noted in client.slowlog_get(1_000_000):
        words = noted["command"].split()
        verb = names.get(words[1].decode()) if words[0].upper() == b"EVALSHA" else None
        if verb is not None:
            found[verb] = max(found.get(verb, 0.0), noted["duration"] / 1000)
    return found
