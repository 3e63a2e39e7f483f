"""Settle a batch: each outcome under exactly the fence that its attempt began with.

Zero rows is an answer, not an exception: the row is read back, and "already so, under my fence" (a
COMMIT whose reply was lost) counts as settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from groupjobs.ledger import sql
from groupjobs.ledger.attempts import Attempt, record
from groupjobs.ledger.database import connection
from groupjobs.ledger.transitions import transit
from groupjobs.lifecycle import LIVE, REQUESTED, RUNNING, TRANSITIONS

SETTLED = "settled"
GONE = "gone"  # the row ended otherwise, or is no more
LATE = "late"  # the row lives on, under another fence or status


@dataclass(frozen=True, slots=True)
class Settlement:
    """What one attempt came to. `transition` names the edge; `result` is JSON text.

    `delay`: seconds until a retry; `yields`: the group does not wait for it. `failed`: one try of
    `max_attempts` is used up. `holds` is why the handler asked to hold its group. `committed`: an atomic run
    has written it already. `attempt` is logged when the attempt did not end in success.
    """

    run: int
    fence: int
    transition: str
    result: str | None = None
    reason: str = ""
    error: dict[str, str] | None = None
    delay: float = 0.0
    yields: bool = False
    failed: bool = False
    tried: bool = True
    holds: str = ""
    committed: bool = False
    attempt: Attempt | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """How a settlement was taken: "settled", "gone" or "late", with the row's status and fence when read back."""

    word: str
    status: str
    fence: int


_COLUMNS: sql.Columns = (("run_id", "int"), ("my_fence", "int"), ("new_result", "text"))


@cache
def _success(vendor: str) -> str:
    now = sql.now(vendor)
    result = sql.json_value(vendor, "b.new_result")
    assignments = (
        f"status = 'SUCCEEDED', reason = '', finished_at = {now}, attempts = r.attempts + 1, "
        f"result = {result}, error = null, dedup_key = null"
    )
    condition = "r.id = b.run_id and r.fence = b.my_fence and r.status = 'RUNNING'"
    return sql.update_from(vendor, assignments, _COLUMNS, condition)


def settle(settlements: Sequence[Settlement]) -> dict[int, Answer]:
    """Write outcomes; the caller holds the transaction that makes them one commit."""
    ordered = sorted(settlements, key=lambda s: s.run)  # one order of row locks for everybody
    answers = _succeed([s for s in ordered if s.transition == "succeed"])
    returned = [s for s in ordered if s.transition == "give_back"]
    answers |= give_back({s.run: s.fence for s in returned})
    others = [s for s in ordered if s.transition not in ("succeed", "give_back")]
    for settlement in others:
        answers[settlement.run] = _settle_one(settlement)
    record([s.attempt for s in others if s.attempt and answers[s.run].word == SETTLED])
    return answers


def _succeed(settlements: Sequence[Settlement]) -> dict[int, Answer]:
    if not settlements:
        return {}
    database = connection()
    rows = [(s.run, s.fence, s.result) for s in settlements]
    with database.cursor() as cursor:
        cursor.execute(_success(database.vendor), sql.list_parameters(rows))
        if cursor.rowcount == len(rows):
            return {s.run: Answer(SETTLED, "SUCCEEDED", s.fence) for s in settlements}
    return _read_back({s.run: (s.fence, "succeed") for s in settlements})


def give_back(fences: dict[int, int]) -> dict[int, Answer]:
    """RUNNING under these fences becomes READY again: nothing was started, nothing is counted."""
    if not fences:
        return {}
    database = connection()
    runs, inner = sql.members(database, "id", sorted(fences))
    mine, outer = sql.members(database, "fence", sorted(fences.values()))
    with database.cursor() as cursor:
        # A fence belongs to one reservation of one run, so the two lists cannot be crossed. MariaDB would look
        # the runs up by their status, and meet another settle, which locks by id, the other way round.
        table = f"{sql.RUN} force index (primary)" if database.vendor == "mysql" else sql.RUN
        text = f"update {table} set status = 'READY' where status = 'RUNNING' and {runs} and {mine}"
        cursor.execute(text, [*inner, *outer])
        if cursor.rowcount == len(fences):
            return {run: Answer(SETTLED, "READY", fence) for run, fence in fences.items()}
    return _read_back({run: (fence, "give_back") for run, fence in fences.items()})


def _settle_one(settlement: Settlement) -> Answer:
    changes: dict[str, Any] = {
        "reason": settlement.reason,
        "error": settlement.error,
        "delay": settlement.delay if settlement.transition == "retry" else None,
        "yields": settlement.yields,
        "failed": settlement.failed,
        "tried": settlement.tried,
        "clear_alone": settlement.failed,
    }
    name = settlement.transition
    ended = {**changes, "reason": REQUESTED}
    if name == "retry" and transit("cancel", settlement.run, RUNNING, settlement.fence, asked=True, **ended):
        return Answer(SETTLED, "CANCELLED", settlement.fence)
    if transit(name, settlement.run, RUNNING, settlement.fence, **changes):
        return Answer(SETTLED, TRANSITIONS[name].target, settlement.fence)
    return _read_back({settlement.run: (settlement.fence, name)})[settlement.run]


def _read_back(expected: dict[int, tuple[int, str]]) -> dict[int, Answer]:
    found = read(list(expected))
    return {run: _answer(found.get(run), fence, name) for run, (fence, name) in expected.items()}


def _answer(row: tuple[str, int] | None, fence: int, name: str) -> Answer:
    if row is None:
        return Answer(GONE, "", 0)
    status, actual = row
    if actual == fence and status == TRANSITIONS[name].target:
        return Answer(SETTLED, status, actual)
    return Answer(LATE if status in LIVE else GONE, status, actual)


def read(runs: Sequence[int]) -> dict[int, tuple[str, int]]:
    """Status and fence of these runs, as they stand now."""
    if not runs:
        return {}
    database = connection()
    condition, parameters = sql.members(database, "id", sorted(runs))
    with database.cursor() as cursor:
        cursor.execute(f"select id, status, fence from {sql.RUN} where {condition}", parameters)
        return {run: (status, fence) for run, status, fence in cursor.fetchall()}
