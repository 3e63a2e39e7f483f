"""One run, one named transition, under exactly the status and fence that were observed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import DateTimeField, ExpressionWrapper, F, Value
from django.db.models.functions import Now

from groupjobs.ledger.database import alias
from groupjobs.lifecycle import TERMINAL, TRANSITIONS, allowed


def later(seconds: float) -> Any:
    """The database's now plus so many seconds."""
    return ExpressionWrapper(Now() + Value(timedelta(seconds=seconds)), output_field=DateTimeField())


def transit(
    name: str,
    run: int,
    status: str,
    fence: int,
    *,
    reason: str = "",
    error: dict[str, str] | None = None,
    delay: float | None = None,
    yields: bool = False,
    failed: bool = False,
    tried: bool = False,
    lost: bool = False,
    suspect: bool = False,
    clear_alone: bool = False,
    new_fence: int | None = None,
    asked: bool | None = None,
) -> bool:
    """Move one run along the named edge; False when it is no longer as it was observed.

    `tried`, `failed` and `lost` count an attempt, a failure and a loss. `asked` narrows to rows with
    (True) or without (False) a cancel request. Raises ValueError for an edge that does not exist.
    """
    from groupjobs.models import JobRun

    if not allowed(name, status):
        raise ValueError(f"A run that is {status} cannot {name}.")
    target = TRANSITIONS[name].target
    changes: dict[str, Any] = {"status": target, "reason": reason[:255]}
    changes |= _ending(target) if target in TERMINAL else _waiting(delay, yields)
    changes |= {name: F(name) + 1 for name, yes in _counted(tried, failed, lost) if yes}
    if error is not None:
        changes["error"] = error
    if suspect or clear_alone:
        changes["alone"] = suspect
    if new_fence is not None:
        changes["fence"] = new_fence
    rows = JobRun.objects.using(alias()).filter(pk=run, status=status, fence=fence)
    if asked is not None:
        rows = rows.filter(cancel_requested_at__isnull=not asked)
    return rows.update(**changes) == 1


def _counted(tried: bool, failed: bool, lost: bool) -> tuple[tuple[str, bool], ...]:
    return (("attempts", tried or lost), ("failures", failed), ("losses", lost))


def _ending(target: str) -> dict[str, Any]:
    return {"finished_at": Now(), "dedup_key": None, "run_after": None, "unpublished": False, "yields": False}


def _waiting(delay: float | None, yields: bool) -> dict[str, Any]:
    return {} if delay is None else {"run_after": later(delay), "yields": yields}
