"""`explain`: one cause at a time over plain facts, and which of two causes is named."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from groupjobs.explain import (
    NAMES,
    GroupFacts,
    HoldFacts,
    QueueFacts,
    ReportFacts,
    RunFacts,
    duration,
    explain,
    explain_run,
)

pytestmark = pytest.mark.once

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
WORKER = "host:1:a"
QUEUE = QueueFacts("default", "open", 15.0, celery_queue="celery", workers=2, consumers=1, ready=3, beats={WORKER: 1.0})
HEAD = RunFacts(5, "shop.jobs.send", "READY", NOW - timedelta(minutes=5), place="line")
RUNNING = replace(
    HEAD, status="RUNNING", place="leased", worker=WORKER, begun_at=NOW - timedelta(seconds=90), attempts=1
)
HOLD = HoldFacts("anna", "printer broken", NOW - timedelta(minutes=3))


def facts(queue: dict[str, Any] | None = None, head: RunFacts | None = HEAD, **columns: Any) -> GroupFacts:
    return GroupFacts(replace(QUEUE, **(queue or {})), "g", NOW, head=head, **columns)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


CASES = [
    ("unreachable", facts({"state": "down", "problem": "refused"}), "Redis does not answer: refused", ""),
    ("newer", facts({"state": "format"}), "a newer release of groupjobs made the keys of the queue", ""),
    (
        "unnamed",
        facts({"state": "unnamed"}),
        "the settings name no queue default, so nobody serves it",
        "",
    ),
    (
        "rebuilding",
        facts({"state": "rebuild", "rebuilding": 3.0}),
        "Redis lost its memory 3 s ago; the queue is rebuilt from rows, which takes up to 15 s",
        "recover",
    ),
    ("idle", facts(head=None), "nothing waits", ""),
    (
        "unreported",
        facts(head=None, unreported=ReportFacts(4, "too_many_losses", 3, False, later(20))),
        "#4 was abandoned (too many losses); its report was tried 3 times",
        "",
    ),
    (
        "unreported",
        facts(head=None, unreported=ReportFacts(4, "too_many_losses", 10, True, None)),
        "#4 was abandoned (too many losses); its report failed 10 times and waits for a person",
        "redeliver",
    ),
    ("held", facts(hold=HOLD, ready=True), "held by anna for 3 min: printer broken", "resume"),
    ("held", facts(hold=HOLD, head=None), "held by anna for 3 min: printer broken", "resume"),
    (
        "held",
        facts(hold=HoldFacts("", "after_failure=hold: run 4 ended", None)),
        "held: after_failure=hold: run 4 ended",
        "resume",
    ),
    (
        "held",
        facts(hold=HOLD, head=RUNNING),
        "held by anna for 3 min: printer broken; #5 still runs to its end",
        "resume",
    ),
    ("paused", facts({"pause": HOLD}), "the queue is paused by anna for 3 min: printer broken", "resume_queue"),
    (
        "ghost",
        facts(head=replace(RUNNING, ghost=True)),
        "#5 was with worker host:1:a, which is dead; it is being healed",
        "recover",
    ),
    (
        "ghost",
        facts({"workers": 0}, head=replace(RUNNING, ghost=True)),
        "#5 was with worker host:1:a, which is dead, and no worker is left to heal it",
        "recover",
    ),
    (
        "silent",
        facts({"beats": {WORKER: 9.0}}, head=RUNNING),
        "#5 is with worker host:1:a, which was last heard of 9 s ago; it is given up after 15 s",
        "",
    ),
    (
        "silent",
        facts({"workers": 1}, head=replace(RUNNING, silent=True)),
        "#5 is with worker host:1:a, which was last heard of 1 s ago; it is given up after 15 s",
        "recover",
    ),
    ("starting", facts(head=replace(RUNNING, status="READY")), "#5 was reserved by host:1:a", ""),
    ("running", facts(head=RUNNING), "#5 runs for 1 min on host:1:a", ""),
    (
        "running",
        facts(head=replace(RUNNING, cancel_requested=True, quiet=5.0)),
        "#5 runs for 1 min on host:1:a; it was asked to cancel",
        "",
    ),
    (
        "quiet",
        facts(head=replace(RUNNING, quiet=2400.0)),
        "#5 runs for 1 min on host:1:a; its progress is unchanged for 40 min",
        "",
    ),
    ("lost", facts(head=replace(RUNNING, place="")), "#5 says RUNNING, but nobody holds it", "recover"),
    ("lost", facts(head=replace(RUNNING, place="line")), "#5 says RUNNING, but nobody holds it", "recover"),
    (
        "unpublished",
        facts(head=replace(HEAD, place="", unpublished=True)),
        "#5 is not published: Redis did not answer when it was enqueued; the next quick sweep does it",
        "recover",
    ),
    ("unknown", facts(head=replace(HEAD, place="")), "Redis does not know #5; the next sweep publishes it", "recover"),
    ("scheduled", facts(head=replace(HEAD, place="scheduled", run_after=later(7200))), "#5 is due in 2 h", "at_once"),
    (
        "backing_off",
        facts(
            head=replace(HEAD, run_after=later(12), failures=1, attempts=3, max_attempts=5, failure="ValueError"),
            later=12.0,
        ),
        "#5 backs off for another 12 s before attempt 2 of 5, after ValueError",
        "at_once",
    ),
    ("rate_limited", facts(later=30.0, limited=True), "rate limited: its next token comes in 30 s", ""),
    (
        "given_back",
        facts(head=replace(HEAD, known=False), later=30.0),
        "no worker knows the job shop.jobs.send of #5; it is tried again, and abandoned in 55 min",
        "start_worker",
    ),
    (
        "given_back",
        facts(later=30.0),
        "a worker gave #5 back: it does not know the job shop.jobs.send, or cannot bind its arguments",
        "start_worker",
    ),
    ("no_worker", facts({"workers": 0}, ready=True), "no worker runs", "start_worker"),
    ("no_worker", facts({"workers": 0}, later=0.0), "no worker runs", "start_worker"),
    (
        "unserved",
        facts({"workers": 0, "elsewhere": 2, "celery_queue": "mail"}, ready=True),
        "2 workers run, but none of them serves the queue default (Celery queue mail)",
        "start_worker",
    ),
    ("waiting", facts(ready=True), "waits for a free worker: 3 groups are ready, 1 consumers serve", ""),
    (
        "no_worker",
        facts({"state": "rebuild", "workers": 0, "opened": False}, head=RUNNING),
        "no worker runs",
        "start_worker",
    ),
    ("no_worker", facts({"state": "rebuild", "workers": 0, "rebuilding": 8.0}), "no worker runs", "start_worker"),
    ("behind", facts(held=2), "2 runs of the group are with workers, which is its limit", ""),
    ("stuck", facts(held=1, strays=1), "Redis holds a place for a run that nobody has", "recover"),
    ("stuck", facts(), "in line, but neither ready nor waiting for anything", "recover"),
]


@pytest.mark.parametrize(("word", "told", "reason", "mend"), CASES)
def test_each_cause_is_named(word: str, told: GroupFacts, reason: str, mend: str) -> None:
    state = explain(told)
    assert (state.word, state.reason, state.mend) == (word, reason, mend)
    assert state.name == str(NAMES[word])


def test_every_state_is_told_of_here() -> None:
    assert {word for word, *_rest in CASES} == set(NAMES)


def test_until_and_since_are_moments() -> None:
    assert explain(facts(hold=HOLD)).since == HOLD.since
    assert explain(facts({"beats": {WORKER: 9.0}}, head=RUNNING)).until == later(6)
    assert explain(facts(later=30.0, limited=True)).until == later(30)
    assert explain(facts(head=RUNNING)).since == RUNNING.begun_at


def test_a_run_behind_the_head_waits_for_it() -> None:
    state = explain_run(facts(head=RUNNING), 9)
    assert state.word == "behind"
    assert state.reason == "waits behind #5 of its group: #5 runs for 1 min on host:1:a"
    assert explain_run(facts(head=RUNNING), 5).word == "running"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"), (-3, "0 s"), (0.04, "0 s"), (0.44, "0.4 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"),
        (59.9, "1 min"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (7830, "2 h 10 min"), (172800, "2 d"),
        (183600, "2 d 3 h"),
    ],
)  # fmt: skip
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
