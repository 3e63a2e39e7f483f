"""Named transitions of runs, each under exactly the status and fence that were observed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypedDict, Unpack

from django.db.models import DateTimeField, ExpressionWrapper, F, Value
from django.db.models.functions import Now

from groupjobs.ledger.database import alias, one_commit
from groupjobs.lifecycle import TERMINAL, TRANSITIONS, allowed


def later(seconds: float) -> Any:
    """The database's now plus so many seconds."""
    return ExpressionWrapper(Now() + Value(timedelta(seconds=seconds)), output_field=DateTimeField())


class Change(TypedDict, total=False):
    """What goes with a transition.

    `delay` is in seconds, and `yields` says that the group does not wait for it. `tried`, `failed` and
    `lost` count an attempt, a failure and a loss. `suspect` marks the run, `clear_alone` unmarks it.
    """

    reason: str
    error: dict[str, str] | None
    delay: float | None
    yields: bool
    failed: bool
    tried: bool
    lost: bool
    suspect: bool
    clear_alone: bool


def transit(
    name: str, run: int, status: str, fence: int, *, asked: bool | None = None, **change: Unpack[Change]
) -> bool:
    """Move one run along the named edge; False when it is no longer as it was observed.

    `asked` narrows to rows with (True) or without (False) a cancel request. Raises ValueError for an
    edge that does not exist.
    """
    from groupjobs.models import JobRun

    if not allowed(name, status):
        raise ValueError(f"A run that is {status} cannot {name}.")
    rows = JobRun.objects.using(alias()).filter(pk=run, status=status, fence=fence)
    if asked is not None:
        rows = rows.filter(cancel_requested_at__isnull=not asked)
    return rows.update(**_columns(TRANSITIONS[name].target, change)) == 1


def transit_each(name: str, fences: Mapping[int, int], status: str, **change: Unpack[Change]) -> set[int]:
    """Move these runs (id -> fence) along the named edge in one commit; answers those that were as observed."""
    from groupjobs.models import JobRun

    if not allowed(name, status):
        raise ValueError(f"Runs that are {status} cannot {name}.")
    rows = JobRun.objects.using(alias()).filter(status=status)
    with one_commit():
        seen = rows.filter(pk__in=list(fences)).select_for_update().order_by("pk").values_list("pk", "fence")
        same = {run for run, fence in seen if fences[run] == fence}
        rows.filter(pk__in=same).update(**_columns(TRANSITIONS[name].target, change))
    return same


def _columns(target: str, change: Change) -> dict[str, Any]:
    columns: dict[str, Any] = {"status": target, "reason": change.get("reason", "")[:255]}
    columns |= _ending() if target in TERMINAL else _waiting(change.get("delay"), change.get("yields", False))
    columns |= {name: F(name) + 1 for name, yes in _counted(change) if yes}
    if change.get("error") is not None:
        columns["error"] = change.get("error")
    if change.get("suspect") or change.get("clear_alone"):
        columns["alone"] = change.get("suspect", False)
    return columns


def _counted(change: Change) -> tuple[tuple[str, bool], ...]:
    tried, lost = change.get("tried", False), change.get("lost", False)
    return (("attempts", tried or lost), ("failures", change.get("failed", False)), ("losses", lost))


def _ending() -> dict[str, Any]:
    return {"finished_at": Now(), "dedup_key": None, "run_after": None, "unpublished": False, "yields": False}


def _waiting(delay: float | None, yields: bool) -> dict[str, Any]:
    return {} if delay is None else {"run_after": later(delay), "yields": yields}
