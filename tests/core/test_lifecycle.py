"""The table of transitions, and the two pure decisions: `admit` of a consumer, `verdict` of recovery."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from groupjobs import lifecycle
from groupjobs.lifecycle import Admission, Lease, RowSeen, Seen

pytestmark = pytest.mark.once


# Where each named transition leads from each status; "-" is no such transition.
#              READY        RUNNING      SUCCEEDED  FAILED     ABANDONED  CANCELLED
TABLE = """
begin          RUNNING      RUNNING      -          -          -          -
succeed        -            SUCCEEDED    -          -          -          -
fail           -            FAILED       -          -          -          -
retry          -            READY        -          -          -          -
give_back      -            READY        -          -          -          -
lose           -            READY        -          -          -          -
abandon        ABANDONED    ABANDONED    -          -          -          -
cancel         CANCELLED    CANCELLED    -          -          -          -
revive         -            -            READY      READY      READY      READY
"""


STATUSES = ("READY", "RUNNING", "SUCCEEDED", "FAILED", "ABANDONED", "CANCELLED")
ROWS = {words[0]: tuple(words[1:]) for words in (line.split() for line in TABLE.strip().splitlines())}
CELLS = [(name, status, target) for name, row in ROWS.items() for status, target in zip(STATUSES, row, strict=True)]


def test_the_table_names_every_status_and_transition() -> None:
    assert STATUSES == lifecycle.STATUSES
    assert set(ROWS) == set(lifecycle.TRANSITIONS)
    assert {"READY", "RUNNING"} == lifecycle.LIVE
    assert set(STATUSES) - lifecycle.LIVE == lifecycle.TERMINAL


@pytest.mark.parametrize(("name", "status", "target"), CELLS)
def test_transition(name: str, status: str, target: str) -> None:
    assert lifecycle.allowed(name, status) is (target != "-")
    if target != "-":
        assert lifecycle.TRANSITIONS[name].target == target


def test_an_unknown_transition_is_an_error() -> None:
    with pytest.raises(KeyError):
        lifecycle.allowed("finish", "READY")


def replace(value: Any, **changes: Any) -> Any:
    return value._replace(**changes) if isinstance(value, Seen) else dataclasses.replace(value, **changes)


WAITING = Seen(
    id=7,
    group="g",
    job="tests.job",
    args="[]",
    kwargs="{}",
    status="READY",
    fence=40,
    alone=False,
    life=1,
    attempts=0,
    failures=0,
    losses=0,
    max_attempts=1,
    max_losses=2,
    after_failure="continue",
    on_retry="block",
    atomic=False,
    time_limit=None,
    soft_time_limit=None,
    worker="",
    consumer="",
    labels="{}",
    cancel_requested=False,
    expired=False,
    early=0.0,
    age=1.0,
    ahead=None,
    held=False,
    version=0,
)


BEGUN = replace(WAITING, status="RUNNING", worker="w-old", consumer="c-old")
MINE = Lease(fence=50, alone=False, healed=0, interrupted=False, consumer="c-new")
HEALED = replace(MINE, healed=40, alone=True)


# --- admit: one reservation and the row that it names


@pytest.mark.parametrize("status", sorted(lifecycle.TERMINAL))
def test_an_entry_without_a_live_row_is_done(status: str) -> None:
    assert lifecycle.admit(None, MINE).kind == "done"
    assert lifecycle.admit(replace(WAITING, status=status), MINE).kind == "done"
    assert lifecycle.admit(replace(WAITING, status=status, fence=60), MINE).kind == "done"


def test_a_waiting_row_with_a_lower_fence_begins() -> None:
    assert lifecycle.admit(WAITING, MINE) == Admission("begin")
    assert lifecycle.admit(replace(WAITING, fence=0), MINE) == Admission("begin")
    assert lifecycle.admit(replace(WAITING, fence=49), MINE) == Admission("begin")


@pytest.mark.parametrize("row", [WAITING, BEGUN])
@pytest.mark.parametrize("lease", [MINE, HEALED, replace(MINE, healed=90)])
def test_nobody_begins_under_a_fence_that_is_not_higher(row: Seen, lease: Lease) -> None:
    """`begin` takes a row whose fence is *below* mine; a lower or equal number is an old one."""
    for fence in (50, 51, 10**16):
        found = lifecycle.admit(replace(row, fence=fence), lease)
        assert (found.kind, found.blocks, found.lost, found.counted) == ("back", True, False, False)


@pytest.mark.parametrize("healed", [0, 1, 39])
@pytest.mark.parametrize("alone", [True, False])
def test_a_running_row_whose_lease_was_not_healed_belongs_to_its_owner(healed: int, alone: bool) -> None:
    found = lifecycle.admit(replace(BEGUN, alone=alone), replace(MINE, healed=healed, alone=True))
    assert (found.kind, found.lost, found.counted, found.blocks) == ("owner", False, False, True)


@pytest.mark.parametrize("healed", [40, 41, 49])
def test_a_healed_lease_may_be_taken_over(healed: int) -> None:
    found = lifecycle.admit(BEGUN, replace(HEALED, healed=healed))
    assert (found.kind, found.lost) == ("begin", True)


@pytest.mark.parametrize(
    ("alone", "interrupted", "counted"),
    [(True, False, True), (True, True, False), (False, False, False), (False, True, False)],
)
def test_a_loss_counts_when_the_row_says_alone_and_the_worker_did_not_leave(
    alone: bool, interrupted: bool, counted: bool
) -> None:
    found = lifecycle.admit(replace(BEGUN, alone=alone), replace(HEALED, interrupted=interrupted))
    assert (found.kind, found.lost, found.counted) == ("begin", True, counted)


@pytest.mark.parametrize(
    ("losses", "most", "kind"),
    [(0, 0, "abandon"), (0, 1, "begin"), (1, 1, "abandon"), (1, 2, "begin"), (2, 2, "abandon"), (5, 2, "abandon")],
)
def test_one_loss_too_many_abandons(losses: int, most: int, kind: str) -> None:
    found = lifecycle.admit(replace(BEGUN, alone=True, losses=losses, max_losses=most), HEALED)
    assert (found.kind, found.lost, found.counted) == (kind, True, True)
    assert found.reason == ("too_many_losses" if kind == "abandon" else "")


def test_a_loss_in_a_batch_or_of_a_leaving_worker_never_abandons() -> None:
    for alone, interrupted in ((False, False), (True, True)):
        row = replace(BEGUN, alone=alone, losses=2, max_losses=2)
        assert lifecycle.admit(row, replace(HEALED, interrupted=interrupted)).kind == "begin"


@pytest.mark.parametrize(
    "row", [replace(WAITING, alone=True), replace(WAITING, max_losses=0), replace(WAITING, time_limit=5.0), BEGUN]
)
def test_what_must_be_alone_is_not_begun_in_a_batch(row: Seen) -> None:
    crowd = replace(MINE, healed=40 if row is BEGUN else 0)
    found = lifecycle.admit(row, crowd)
    assert (found.kind, found.blocks, found.lost, found.counted) == ("suspect", True, row is BEGUN, False)
    assert lifecycle.admit(row, replace(crowd, alone=True)).kind == "begin"


@pytest.mark.parametrize("row", [WAITING, BEGUN, replace(BEGUN, alone=True)])
@pytest.mark.parametrize(
    ("change", "kind", "reason"),
    [
        ({"cancel_requested": True}, "cancel", "requested"),
        ({"expired": True}, "cancel", "expired"),
        ({"held": True}, "back", "held"),
        ({"ahead": 3}, "back", "order"),
    ],
)
def test_what_keeps_a_run_from_beginning(row: Seen, change: dict[str, Any], kind: str, reason: str) -> None:
    found = lifecycle.admit(replace(row, **change), HEALED if row.status == "RUNNING" else MINE)
    assert (found.kind, found.reason) == (kind, reason)
    assert found.lost is (row.status == "RUNNING")
    assert found.counted is (row.status == "RUNNING" and row.alone and reason != "requested")
    assert found.blocks is (kind == "back")


def test_a_run_before_its_time_goes_back_until_then() -> None:
    found = lifecycle.admit(replace(WAITING, early=12.5), MINE)
    assert (found.kind, found.reason, found.delay, found.blocks) == ("back", "early", 12.5, True)
    assert lifecycle.admit(replace(WAITING, early=-12.5), MINE).kind == "begin"


def test_a_cancel_request_ends_a_held_run_too() -> None:
    assert lifecycle.admit(replace(WAITING, held=True, ahead=3, cancel_requested=True), MINE).kind == "cancel"


@pytest.mark.parametrize("admission", [Admission("begin"), Admission("begin", lost=True, counted=True)])
def test_an_unknown_job_goes_back_until_the_grace_is_over(admission: Admission) -> None:
    delays = []
    for age in (0.0, 1.0, 10.0, 100.0, 1000.0, 3599.9):
        found = lifecycle.admit_unknown(admission, age, 3600, "unknown_job")
        assert (found.kind, found.reason, found.blocks) == ("back", "unknown_job", True)
        assert (found.lost, found.counted) == (admission.lost, admission.counted)
        assert 0.5 <= found.delay <= 60
        delays.append(found.delay)
    assert delays[:4] == sorted(delays[:4])
    for age in (3600.0, 1e6):
        found = lifecycle.admit_unknown(admission, age, 3600, "unknown_job")
        assert (found.kind, found.reason) == ("abandon", "unknown_job")
        assert (found.lost, found.counted) == (admission.lost, admission.counted)


def test_a_run_of_an_unknown_job_looks_again_soon_after_its_grace() -> None:
    assert lifecycle.admit_unknown(Admission("begin"), 3590.0, 3600, "unknown_job").delay == pytest.approx(10)


READY = RowSeen("READY", fence=40, life=2, alone=False, losses=0, max_losses=2)
RUNNING = replace(READY, status="RUNNING")
