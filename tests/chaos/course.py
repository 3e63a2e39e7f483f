"""The course of a chaos run: begin, trouble, drain, judge, report."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

from tests.chaos.chaos import Chaos
from tests.chaos.faults import Trouble
from tests.chaos.history import History
from tests.chaos.plan import Plan

UNMOVED: Final = 90.0  # seconds without any run ending, after which those that live are stuck
CLEAN: Final = 30.0  # seconds until Redis holds nothing of runs that ended


def run(plan: Plan, folder: Path) -> bool:
    """One run; True when nothing was broken. The verdict is the last line of the output."""
    chaos = Chaos(plan, folder)
    try:
        chaos.start()
        prepare()
        trouble = Trouble(chaos)
        happen(chaos, trouble)
        drain(chaos)
        history = gathered(chaos)
        return conclude(chaos, history, sum(trouble.counts.values()))
    finally:
        chaos.stop()


def prepare() -> None:
    """Make the tables. Django is set up here, because the servers' addresses are known only now."""
    import django
    from django.core.management import call_command

    from tests.chaos import audit

    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
    audit.set_up()


def happen(chaos: Chaos, trouble: Trouble) -> None:
    """Producers and faults, until both have ended."""
    chaos.fleet.supervise()
    for worker in chaos.fleet.workers:
        worker.wait_ready()
    chaos.say("the fleet is up")
    chaos.crew.start()
    trouble.prepare()
    said = time.monotonic()
    while chaos.agenda or chaos.crew.working:
        chaos.work(0.2)
        if time.monotonic() - said > 10:
            said = time.monotonic()
            chaos.say(progress(chaos))
    chaos.say(f"all faults have ended: {dict(trouble.counts)}")


def progress(chaos: Chaos) -> str:
    """Where the run is."""
    log = chaos.handler_log
    size = log.stat().st_size if log.exists() else 0
    return f"{size // 1024} KiB of begins and ends; {len(chaos.crew.working)} producers at work"


def drain(chaos: Chaos) -> None:
    """Until no run lives; gives up when for a while none has ended."""
    from tests.chaos import audit

    left, moved, said = audit.live(), time.monotonic(), 0.0
    while left and time.monotonic() - moved < UNMOVED:
        chaos.work(0.5)
        now = audit.live()
        moved = time.monotonic() if now != left else moved
        left = now
        if time.monotonic() - said > 5:
            said = time.monotonic()
            chaos.say(f"{left} runs live")
    chaos.say(f"{left} runs live at the end")


def gathered(chaos: Chaos) -> History:
    """Everything that is known, once Redis has come to rest."""
    from tests.chaos import audit, lines
    from tests.chaos.remains import settled_keys

    keys = settled_keys(chaos, CLEAN)
    chaos.fleet.end()  # also where runs are left: log, rows and effects are read one after the other
    told = lines.read(chaos.handler_log.read_text().splitlines())
    return History(
        intents=list(chaos.crew.intents()),
        attempts=told.attempts,
        rows=audit.rows(),
        changes=audit.changes(),
        effects=audit.effects(),
        kills=[*chaos.record.kills, *told.kills],
        stops=chaos.record.stops,
        keys_left=keys,
        crashes=[*chaos.crashes, *chaos.crew.failures, *chaos.fleet.overdue],
        ttl=chaos.plan.ttl,
    )


def conclude(chaos: Chaos, history: History, faults: int) -> bool:
    """Judge and report; True when nothing was broken."""
    from tests.chaos import report

    chaos.say("judging")
    verdict, found = report.verdict(history, chaos.plan.seed, faults)
    report.explain(chaos, history, found)
    print(json.dumps(verdict), flush=True)
    return not found
