"""The jobs that tests run: each has one habit. What they do is said in the journal, label first."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from django.db import connection, connections, transaction
from django.utils import timezone, translation

from groupjobs import Cancel, Hold, Retry, atomic_hook, job
from groupjobs.models import JobProgress, JobRun
from groupjobs.store import store_for
from tests.jobsapp.journal import say, wait_at
from tests.jobsapp.models import Written

FAST = 0.05  # seconds of back-off


@job
def noop(*args: Any, **kwargs: Any) -> None:
    """Does nothing with anything."""


@job
def echo(value: Any) -> Any:
    say("echo", value)
    return value


@job(group="{group}")
def note(label: str, group: str = "g") -> str:
    say(label)
    return label


@job
async def anote(label: str) -> str:
    say(label)
    return label


@job(takes_context=True)
def shows_context(context: Any, label: str) -> list[Any]:
    say(label)
    return [context.attempt, context.fence, context.run_id, context.group, context.cancelled]


# --- failures


@job
def fails(label: str) -> None:
    say(label)
    raise ValueError(f"{label} does not work")


@job(takes_context=True, max_attempts=5, backoff=FAST)
def flaky(context: Any, label: str, failures: int = 1) -> str:
    say(label)
    if context.attempt <= failures:
        raise ValueError(f"{label}, attempt {context.attempt}")
    return label


@job(max_attempts=5, backoff=FAST, retry_on=[KeyError])
def picky(label: str, error: str) -> None:
    say(label)
    raise {"key": KeyError, "value": ValueError}[error](label)


@job(takes_context=True, max_attempts=3, backoff=60)
def asks_again(context: Any, label: str, after: float) -> str:
    say(label)
    if context.attempt == 1:
        raise Retry(after=after)
    return label


@job(max_attempts=5)
def gives_up(label: str, reason: str = "no more") -> None:
    say(label)
    raise Cancel(reason)


@job(group="{group}")
def wants_a_person(label: str, group: str = "g", reason: str = "look") -> None:
    say(label)
    raise Hold(reason)


BAD_RESULTS: dict[str, Any] = {
    "object": object(),
    "nan": float("nan"),
    "infinity": [float("inf")],
    "nul": "a\0b",
    "surrogate": {"text": "\ud800"},
    "integer key": {1: 2},
    "datetime": dt.datetime(2030, 1, 1),
    "bytes": b"\xff",
    "itself": [],
}
BAD_RESULTS["itself"].append(BAD_RESULTS["itself"])


@job
def answers_badly(kind: str) -> Any:
    say("bad", kind)
    return BAD_RESULTS[kind]


class Evil(Exception):
    """An exception whose text is poison, or which has none."""

    def __str__(self) -> str:
        if self.args[0] == "raises":
            raise RuntimeError("no text")
        return {"nul": "a\0b", "surrogate": "a\ud800b", "long": "x" * 1_000_000}[self.args[0]]


@job(max_attempts=2, backoff=0)
def raises_evil(kind: str) -> None:
    say("evil", kind)
    raise Evil(kind)


class Unseen(Exception):
    """An exception at which nobody can look."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


BURSTS = {
    "exit": SystemExit(3),
    "keyboard": KeyboardInterrupt(),
    "cancelled": asyncio.CancelledError(),
    "generator": GeneratorExit(),
    "group": BaseExceptionGroup("several", [Retry(after=0), ValueError()]),
    "unseen": Unseen(),
}


@job(retry_on=OSError, max_attempts=2)
def bursts(label: str, kind: str) -> None:
    say(label)
    raise BURSTS[kind]


@job(group="f", atomic=True)
def forks(label: str, how: str) -> str:
    """Both copies of the process come to its end, or one of them raises."""
    child = os.fork()
    if child == 0:
        if how == "raises":
            raise ValueError(how)
        return "child"
    os.waitpid(child, 0)
    say(label)
    return "parent"


# --- habits with connections and context


@job
def leaves_open(label: str, how: str, fails: bool = False) -> None:
    """Ends in the middle of a transaction, by itself or with an error."""
    say(label)
    if how == "autocommit":
        connection.set_autocommit(False)
    else:
        transaction.atomic().__enter__()
    Written.objects.create(label=label, run=0, fence=0)
    if fails:
        raise ValueError(label)


@job
def says_in_sql(label: str, statement: str) -> None:
    say(label)
    connection.cursor().execute(statement)


@job
def closes_connections(label: str) -> None:
    say(label)
    connections.close_all()


@job
def speaks_danish(label: str) -> None:
    translation.activate("da")
    timezone.activate(dt.timezone(dt.timedelta(hours=3)))
    say(label)


@job
def tells_language(label: str) -> list[str]:
    say(label)
    return [translation.get_language(), str(timezone.get_current_timezone())]


@job
def tells_transaction(label: str) -> list[bool]:
    say(label)
    return [connection.in_atomic_block, connection.get_autocommit()]


@job(takes_context=True)
def tells_company(context: Any, label: str) -> list[Any]:
    """Whether its row says `alone`, and how many rows say RUNNING."""
    say(label)
    return [JobRun.objects.get(pk=context.run_id).alone, JobRun.objects.filter(status="RUNNING").count()]


# --- gates and time


@job(group="{group}")
def waits(label: str, gate: str, group: str = "g") -> str:
    say(label, "begins")
    wait_at(gate)
    say(label, "ends")
    return label


@job(group="{group}")
def first_waits(label: str, gate: str, group: str = "g") -> str:
    """Only the first attempt, of whatever process, waits."""
    try:
        Path(f"{gate}.first").touch(exist_ok=False)
    except FileExistsError:
        say(label, "again")
        return "again"
    say(label, "first")
    wait_at(gate)
    say(label, "first ends")
    return "first"


@job(group="aircraft:{tail}", name="logbook.jobs.inspect", takes_context=True)
def inspects(context: Any, tail: str, engines: int) -> str:
    """Only the first attempt waits, at the gate that the environment of its worker names."""
    gate = os.environ["GROUPJOBS_TEST_GATE"]
    context.progress(done=1, total=engines, message="engine 1", phase="engines")
    try:
        Path(f"{gate}.first").touch(exist_ok=False)
    except FileExistsError:
        context.progress(done=engines, total=engines, message="all engines")
        return "airworthy"
    wait_at(gate)
    return "not reached"


@job(takes_context=True)
def deletes_itself(context: Any, label: str) -> None:
    say(label)
    JobRun.objects.filter(pk=context.run_id).delete()


@job(takes_context=True)
def loses_its_worker(context: Any, label: str) -> None:
    """Its whole worker is taken for dead while it works, for longer than a lease stays confirmed."""
    say(label)
    store_for("default").reap(worker=JobRun.objects.get(pk=context.run_id).worker)
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        pass


@job(takes_context=True)
def obeys(context: Any, label: str, gate: str) -> None:
    """Ends when it is asked to, or when the gate opens."""
    say(label, "begins")
    for _ in iter(lambda: Path(gate).exists(), True):
        context.check()


@job(takes_context=True)
def counts(context: Any, steps: int, gate: str = "") -> None:
    context.progress(done=0, total=steps, message="start", phase="counting")
    if gate:
        wait_at(gate)
    for _ in context.track(range(steps), message="é☃"):
        pass


# --- atomic


@job(takes_context=True, atomic=True, group="{group}")
def writes(context: Any, label: str, group: str = "g") -> str:
    Written.objects.create(label=label, run=context.run_id, fence=context.fence)
    say(label)
    return label


@job(takes_context=True, atomic=True)
def writes_and_waits(context: Any, label: str, gate: str) -> str:
    Written.objects.create(label=label, run=context.run_id, fence=context.fence)
    say(label, "begins")
    wait_at(gate)
    say(label, "ends")
    return label


@job(takes_context=True, atomic=True, max_attempts=3, backoff=FAST)
def writes_and_fails(context: Any, label: str, failures: int = 1) -> str:
    Written.objects.create(label=label, run=context.run_id, fence=context.fence)
    say(label)
    if context.attempt <= failures:
        raise ValueError(label)
    return label


@job(takes_context=True, atomic=True, max_attempts=2, backoff=FAST)
def breaks_at_commit(context: Any, label: str) -> None:
    """A deferred constraint that only COMMIT looks at."""
    say(label)
    Written.objects.create(label=label, run=context.run_id, fence=context.fence)
    JobProgress.objects.create(run_id=2**40 + context.run_id)


@job(takes_context=True, atomic=True)
def is_superseded_once(context: Any, label: str, gate: str) -> None:
    """The first attempt's row is taken over, by another connection, while it works."""
    Written.objects.create(label=label, run=context.run_id, fence=context.fence)
    say(label)
    try:
        Path(f"{gate}.first").touch(exist_ok=False)
    except FileExistsError:
        return
    taken = threading.Thread(target=_take_over, args=(context.run_id, context.fence + 1000))
    taken.start()
    taken.join()


def _take_over(run: int, fence: int) -> None:
    JobRun.objects.filter(pk=run).update(fence=fence, consumer="another", worker="there:1:other")
    connections.close_all()


@job(takes_context=True, atomic=True)
def nests(context: Any, label: str, hook: str = "", inner: str = "") -> None:
    """An inner block that is rolled back, one that is left open, or a hook that runs, or raises, after COMMIT."""
    Written.objects.create(label=label, run=context.run_id, fence=context.fence)
    say(label)
    if hook:
        transaction.on_commit({"says": _says_committed, "raises": _raises}[hook])
    if inner == "rolled back":
        with transaction.atomic():
            Written.objects.create(label="inner", run=context.run_id, fence=context.fence)
            transaction.set_rollback(True)
    elif inner:
        transaction.atomic().__enter__()


def _says_committed() -> None:
    say("committed", connection.in_atomic_block)


def _raises() -> None:
    say("hook")
    raise ValueError("after COMMIT")


@job(takes_context=True, atomic=True, max_attempts=2, backoff=FAST)
def writes_and(context: Any, label: str, what: str) -> Any:
    Written.objects.create(label=label, run=context.run_id, fence=context.fence)
    say(label)
    if what == "cancel":
        raise Cancel("no more")
    if what == "hold":
        raise Hold("look")
    if what == "retry" and context.attempt == 1:
        raise Retry(after=0.01)
    return object() if what == "bad result" else label


# --- enqueue in a handler


@job(group="{group}")
def parent(label: str, group: str = "g", children: int = 1) -> None:
    say(label)
    for number in range(children):
        note.enqueue(label=f"{label}.{number}", group=group)


@job(atomic=True, group="{group}")
def failing_parent(label: str, group: str = "g") -> None:
    say(label)
    note.enqueue(label=f"{label}.0", group=group)
    raise ValueError(label)


# --- death


@job(group="{group}")
def kills(label: str, group: str = "g") -> None:
    say(label)
    os.kill(os.getpid(), signal.SIGKILL)


# --- abandonment


def reports(run: Any, reason: str) -> None:
    say("report", run.pk, reason)


def reports_badly(run: Any, reason: str) -> None:
    say("report", run.pk, reason)
    raise ValueError("the hook is broken")


def reports_late(run: Any, reason: str) -> None:
    say("report", run.pk, reason)
    wait_at(run.kwargs["gate"])
    say("report ends", run.pk)


@atomic_hook
def reports_in_one_commit(run: Any, reason: str) -> None:
    Written.objects.create(label="report", run=run.pk, fence=run.fence)
    say("report", run.pk, reason)


@atomic_hook
def reports_half(run: Any, reason: str) -> None:
    Written.objects.create(label="half a report", run=run.pk, fence=run.fence)
    say("report", run.pk, reason)
    raise ValueError("the hook is broken")


@job(on_abandoned=reports, max_losses=0)
def precious(label: str) -> None:
    say(label)


@job(on_abandoned=reports_badly, max_losses=0)
def badly_reported(label: str) -> None:
    say(label)


@job(on_abandoned=reports_late, max_losses=0)
def slowly_reported(label: str, gate: str) -> None:
    say(label)


@job(on_abandoned=reports_in_one_commit, max_losses=0)
def reported_in_one_commit(label: str) -> None:
    say(label)


@job(on_abandoned=reports_half, max_losses=0)
def half_reported(label: str) -> None:
    say(label)


@job(on_abandoned=reports, max_attempts=1)
def fails_and_has_a_hook(label: str) -> None:
    say(label)
    raise ValueError(label)


@job(group="{group}", takes_context=True, max_attempts=2, backoff=FAST)
def one_of_many(context: Any, group: str, number: int, fails: bool = False) -> None:
    """Says when it begins and ends; between the two nobody else of its group may begin."""
    say("begin", group, number)
    said_all = "end" if not fails or context.attempt == 2 else "failed"
    say(said_all, group, number)
    if said_all == "failed":
        raise ValueError("the first time")
