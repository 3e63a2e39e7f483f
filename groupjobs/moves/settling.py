"""Settle: rows in one commit first, then what Redis is told of each lease with the next step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from groupjobs import ledger
from groupjobs.ledger import Answer, Settlement
from groupjobs.lifecycle import CANCELLED, REQUESTED, Seen
from groupjobs.moves import holding
from groupjobs.store import Outcome

if TYPE_CHECKING:
    from groupjobs.models import JobGroup

Item = tuple[Seen, Settlement]
ENDS_IN_FAILURE: Final = frozenset({"fail", "abandon"})


class Settled(NamedTuple):
    """What Redis is to hear of an attempt, and what its row took: None when the run had ended or moved on otherwise."""

    outcome: Outcome
    settlement: Settlement | None


def settle(queue: str, items: Sequence[Item]) -> dict[int, Settled]:
    """Write the outcomes of a batch and answer what came of it for each run.

    A connection-class error is raised: the leases stay, and the caller tries again. Any other error
    is one bad value: the runs are settled one by one, and the offender ends FAILED.
    """
    if not items:
        return {}
    written = list(items)
    try:
        answers, holds = _write(queue, items)
    except ledger.CONNECTION_ERRORS:
        raise
    except Exception:
        answers, holds, written = _write_one_by_one(queue, items)
    for hold in holds:
        holding.tell_anew(hold)
    _cancel_lines(queue, written, answers)
    return {s.run: Settled(outcome(s, answers[s.run]), _taken(s, answers[s.run])) for _, s in written}


def _write(queue: str, items: Sequence[Item]) -> tuple[dict[int, Answer], list[JobGroup]]:
    settlements = [settlement for _, settlement in items]
    if all(s.transition == "succeed" for s in settlements) and not ledger.connection().in_atomic_block:
        return ledger.settle(settlements), []  # one statement is one commit
    with ledger.one_commit():
        answers = ledger.settle(settlements)
        return answers, _hold_groups(queue, items, answers)


def _hold_groups(queue: str, items: Sequence[Item], answers: dict[int, Answer]) -> list[JobGroup]:
    """`after_failure`: the hold is written in the same commit as the failure that causes it."""
    holds = []
    for row, settlement in items:
        if row.group and answers[row.id].word == ledger.SETTLED and _stops_its_group(row, settlement):
            holds.append(holding.hold_row(queue, row.group, _why(row, settlement)))
    return [hold for hold in holds if hold is not None]


def _stops_its_group(row: Seen, settlement: Settlement) -> bool:
    if settlement.holds:
        return True
    return settlement.transition in ENDS_IN_FAILURE and row.after_failure in ("hold", "cancel")


def _why(row: Seen, settlement: Settlement) -> str:
    if settlement.holds:
        return settlement.holds
    return holding.reason_after(row.after_failure, row.id)


def _cancel_lines(queue: str, items: Sequence[Item], answers: dict[int, Answer]) -> None:
    for row, settlement in items:
        ended = settlement.transition in ENDS_IN_FAILURE and answers[row.id].word == ledger.SETTLED
        if ended and row.group and row.after_failure == "cancel":
            holding.cancel_line(queue, row.group, row.id)


def _write_one_by_one(queue: str, items: Sequence[Item]) -> tuple[dict[int, Answer], list[JobGroup], list[Item]]:
    """The answers, the holds, and the items as they were written: an offender with another settlement."""
    answers: dict[int, Answer] = {}
    holds: list[JobGroup] = []
    written = list(items)
    for place, item in enumerate(items):
        try:
            answer, held = _write(queue, [item])
        except ledger.CONNECTION_ERRORS:
            raise
        except Exception as error:
            written[place] = (item[0], _refused(item[1], error))
            answer, held = _write(queue, [written[place]])
        answers |= answer
        holds += held
    return answers, holds, written


def _taken(settlement: Settlement, answer: Answer) -> Settlement | None:
    """A retry of a run that somebody asked to cancel was taken as its end."""
    if answer.word != ledger.SETTLED:
        return None
    if settlement.transition == "retry" and answer.status == CANCELLED:
        return replace(settlement, transition="cancel", reason=REQUESTED)
    return settlement


def _refused(settlement: Settlement, error: Exception) -> Settlement:
    """The database would not take this outcome: the run ends FAILED, and says why."""
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    text = f"The outcome could not be stored: {error}".encode("ascii", "backslashreplace").decode().replace("\0", "")
    failure = {"class": name, "message": text, "traceback": ""}
    attempt = ledger.Attempt(settlement.run, settlement.fence, "failed", error_class=name, message=text)
    return replace(
        settlement, transition="fail", result=None, reason="", error=failure, failed=True, tried=True, attempt=attempt
    )


def outcome(settlement: Settlement, answer: Answer) -> Outcome:
    """What Redis is told of a lease, from how its row took the settlement."""
    if answer.word == ledger.LATE:
        return Outcome(settlement.run, settlement.fence, "back", fence_to=answer.fence)
    if answer.word == ledger.GONE or answer.status not in ("READY", "RUNNING"):
        return Outcome(settlement.run, settlement.fence, "done")
    if settlement.transition == "retry":
        delay = round(settlement.delay * 1000)
        return Outcome(settlement.run, settlement.fence, "retry", delay_ms=delay, yields=settlement.yields)
    return Outcome(settlement.run, settlement.fence, "back")
