"""The verdict, and for each broken promise what a person needs to find out why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from project import child
from tests.chaos import audit
from tests.chaos.chaos import Chaos
from tests.chaos.history import COMMITTED, History, Violation
from tests.chaos.judge import KINDS, PROMISED, violations
from tests.chaos.judge.losses import unwatched
from tests.chaos.judge.recovering import percentile, recoveries

SHOWN: Final = 5  # violations of a kind
ERROR: Final = re.compile(r"^([\w.]+(?:Error|Exception|Lost|Refused|Stopped|Interrupt))\b.{0,100}", re.MULTILINE)


def verdict(history: History, seed: int, faults: int) -> tuple[dict[str, Any], list[Violation]]:
    """The last line, and every broken promise."""
    found = list(violations(history))
    counts = Counter(violation.kind for violation in found)
    times = [found.seconds * 1000 for found in recoveries(history)]
    return {
        "runs": sum(intent.fate == COMMITTED for intent in history.intents),
        "faults": faults,
        **{kind: counts[kind] for kind in PROMISED},
        "recovery_p50_ms": round(percentile(times, 0.5)),
        "recovery_p99_ms": round(percentile(times, 0.99)),
        "seed": seed,
        **{kind: counts[kind] for kind in KINDS if kind not in PROMISED},
    }, found


def explain(chaos: Chaos, history: History, found: Sequence[Violation]) -> None:
    """Print how recoveries went, which errors the logs hold, and the stories of broken promises."""
    tell_recoveries(chaos, history)
    print(f"statuses of recover_ghosts: {dict(Counter(chaos.statuses))}")
    if strange := unwatched(history):
        print(f"{len(strange)} attempts were served under an identity of their own: runs {strange[:SHOWN]}")
    for text, count in errors(chaos).most_common(12):
        print(f"in the workers' logs {count} times: {text}")
    for kind in KINDS:
        of_kind = [violation for violation in found if violation.kind == kind]
        for violation in of_kind[:SHOWN]:
            print("\n".join([f"--- {kind}: {violation.text}", *story(history, violation)]))
        if len(of_kind) > SHOWN:
            print(f"--- {kind}: {len(of_kind) - SHOWN} more")
    if found:
        tails(chaos)


def tell_recoveries(chaos: Chaos, history: History) -> None:
    """How long groups waited after a kill, by its kind, and the longest waits."""
    found = sorted(recoveries(history), key=lambda recovery: recovery.seconds)
    for kind in sorted({recovery.kill.kind for recovery in found}):
        seconds = [recovery.seconds for recovery in found if recovery.kill.kind == kind]
        middle, most = percentile(seconds, 0.5), percentile(seconds, 0.99)
        print(f"recovery after kill of {kind}: {len(seconds)} times, p50 {middle:.3f} s, p99 {most:.3f} s")
    for slow in found[-SHOWN:]:
        at = slow.kill.at - chaos.started
        print(
            f"    {slow.seconds:.3f} s after the kill of {slow.kill.kind} {slow.kill.pid} at {at:.1f} s: {slow.attempt}"
        )


def errors(chaos: Chaos) -> Counter[str]:
    """Last lines of tracebacks in the workers' logs, but for those that were meant."""
    counts: Counter[str] = Counter()
    for log in chaos.fleet.logs:
        counts.update(re.sub(r"\d+", "N", match[0]) for match in ERROR.finditer(log.read_text(errors="replace")))
    return Counter({text: count for text, count in counts.items() if not text.startswith("tests.chaos")})


def story(history: History, violation: Violation) -> Iterator[str]:
    """What handlers, database and harness know of the runs of a violation."""
    for run in violation.runs:
        for attempt in history.tried.get(run, ()):
            zombie = " (may be a zombie)" if history.is_zombie(attempt) else ""
            yield f"    handler: {attempt}{zombie}"
            if intent := history.by_token.get(attempt.token):
                yield f"    {intent}"
            yield from (f"    {kill}" for kill in history.kills if kill.main == attempt.main or kill.pid == attempt.pid)
            yield from (f"    {stop}" for stop in history.stops if stop.main == attempt.main)
        yield from (f"    {change}" for change in history.changed.get(run, ()))
        yield from (f"    {line}" for line in audit.details(run))


def tails(chaos: Chaos) -> None:
    """The ends of the workers' logs."""
    for log in chaos.fleet.logs[-chaos.plan.workers - 1 :]:
        print(f"=== {log.name}\n{child.tail(log, 15)}")
