"""Jobs with the semantics that these tests are about. What they do is said in the journal, label first."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from django.db import transaction

from groupjobs import Cancel, Hold, Retry, SoftTimeLimit, job
from tests.jobsapp.journal import say, wait_at
from tests.jobsapp.models import Written

# --- dedup


@job(dedup="{key}", group="{group}")
def once(key: str, label: str = "", gate: str = "", group: str = "g") -> str:
    say("begins", label)
    if gate:
        wait_at(gate)
    return label


@job(dedup="{key}")
def other_once(key: str) -> None:
    say("other", key)


@job(dedup="{key}", on_duplicate="replace", group="{key}")
def newest(key: str, label: str = "", gate: str = "") -> str:
    say("begins", label)
    if gate:
        wait_at(gate)
    return label


@job(dedup="{key}", on_duplicate="coalesce")
def coalesced(key: str, label: str = "", gate: str = "") -> str:
    say("begins", label)
    if gate:
        wait_at(gate)
    say("ends", label)
    return label


@job(dedup=lambda key, **_: key)
def sometimes_once(key: str | None, label: str = "") -> Any:
    say("begins", label)
    return label


# --- time limits


@job(takes_context=True, soft_time_limit=0.3, max_attempts=2, backoff=0.05, group="{group}")
def softly_limited(context: Any, label: str, times: int = 1, group: str = "g") -> str:
    """Lasts for ever in its first attempts, unless it is interrupted."""
    say("begins", label)
    while context.attempt <= times:
        pass
    return label


@job(soft_time_limit=0.3)
def tidies_up(label: str) -> str:
    try:
        while True:
            pass
    except SoftTimeLimit:
        say("tidy", label)
    return label


@job(takes_context=True, soft_time_limit=0.3, atomic=True)
def writes_for_ever(context: Any, label: str) -> None:
    Written.objects.create(label=label, run=context.run_id, fence=context.fence)
    while True:
        pass


@job(soft_time_limit=0.3)
async def awaits_for_long(label: str) -> None:
    say("begins", label)
    await asyncio.wait_for(asyncio.Event().wait(), 20)


@job(soft_time_limit=5)
async def awaits_briefly(label: str) -> str:
    try:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()
    except TimeoutError:
        return "its own timeout"
    return label


@job(takes_context=True, time_limit=1, max_attempts=2, backoff=0.05, max_losses=0, group="{group}")
def hard_limited(context: Any, label: str, times: int = 1, group: str = "g") -> str:
    say("begins", label)
    if context.attempt <= times:
        hold_the_gil()
    return label


@job(time_limit=30, group="g")
def in_time(label: str) -> str:
    say("begins", label)
    return label


@job(max_losses=0, group="{group}")
def deaf(label: str, group: str = "g") -> None:
    say("begins", label)
    hold_the_gil()


def hold_the_gil() -> None:
    """No other thread of this process runs until it is killed: one call into C that backtracks for ages."""
    re.match(r"(a+)+$", "a" * 64 + "b")


@job(group="{group}", after_failure="hold", time_limit=0.5)
def stops_its_group(label: str, group: str = "g") -> None:
    say("begins", label)
    hold_the_gil()


# --- for the helpers of tests


@job(takes_context=True, max_attempts=3, backoff=3600)
def slow_to_retry(context: Any, label: str) -> str:
    if context.attempt < 3:
        raise ValueError(label)
    return label


@job(atomic=True)
def calls_back(label: str) -> None:
    def committed() -> None:
        Written.objects.create(label=f"{label} was committed", run=0, fence=0)

    transaction.on_commit(committed)


@job
def leaves_a_transaction(label: str) -> str:
    transaction.atomic().__enter__()
    return label


@job(group="{group}")
def enqueues_itself(number: int, group: str = "g") -> None:
    enqueues_itself.enqueue(number + 1, group=group)


@job
def labelled(label: str) -> str:
    say(label)
    return label


@job(max_attempts=5, backoff=0)
def fails_at_the_gate(label: str, gate: str) -> None:
    say("begins", label)
    wait_at(gate)
    raise ValueError(label)


# --- progress, chaining, names


@job(takes_context=True, atomic=True)
def tells_and_waits(context: Any, gate: str) -> None:
    for done in range(1, 6):
        context.progress(done=done, total=10, message=f"step {done}", phase="walking")
    say("told")
    wait_at(gate)


@job(takes_context=True)
def tracks(context: Any, gate: str) -> None:
    """Listens for a cancel at each step of an endless walk."""
    for step in context.track(iter(int, 1), message="for ever"):
        if not step:
            say("walks")
            wait_at(gate)


@job(group="{group}")
def chains(label: str, follow: list[str], group: str = "c") -> None:
    say(label)
    if follow:
        chains.enqueue(follow[0], follow[1:], group)


@job(name="tests.semantics.renamed", aliases=["tests.old_name", "tests.semantics.jobs.moved_away"])
def renamed(label: str) -> str:
    say("renamed", label)
    return label


# --- coroutines


@job(takes_context=True, max_attempts=2, group="{group}")
async def ends_as_asked(context: Any, what: str, group: str = "g") -> str:
    await asyncio.sleep(0)
    if what == "retry" and context.attempt == 1:
        raise Retry(after=0)
    if what == "cancel":
        raise Cancel("no more")
    if what == "hold":
        raise Hold("look")
    return what


@job(takes_context=True, atomic=True)
async def writes_later(context: Any, label: str, fails: bool = False) -> str:
    await Written.objects.acreate(label=label, run=context.run_id, fence=context.fence)
    await labelled.aenqueue(f"after {label}")
    if fails:
        raise ValueError(label)
    return label


@job(takes_context=True)
async def listens_later(context: Any, gate: str) -> None:
    for step in context.track(iter(int, 1)):
        if not step:
            say("walks")
        await asyncio.sleep(0.01)
