"""Enqueue: write runs in the caller's own transaction and publish them when it commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from groupjobs import ledger, moves, policy, registry
from groupjobs.models import JobRun

Call = tuple[Sequence[Any], Mapping[str, Any]]


def enqueue_runs(task: Any, calls: Sequence[Call]) -> list[JobRun]:
    """Enqueue one run per call of (args, kwargs), all or nothing; answers the rows in the same order.

    Raises `errors.Refused` before anything is written when a call's arguments are no JSON, do not fit
    the signature, or give no valid group. Does not fail because Redis or the broker is down.
    """
    handler = registry.handler_of(task)
    runs = [_row(handler, args, kwargs) for args, kwargs in calls]
    if runs:
        ledger.insert(runs)
        moves.publish_later(runs, ledger.alias())
    return runs


def _row(handler: registry.Handler, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JobRun:
    options = handler.policy
    names = tuple(handler.signature.parameters)
    plain_args, plain_kwargs = policy.json_checked(handler.name, args, kwargs, names)
    return JobRun(
        queue=options.queue_name,
        group=policy.group_of(options, handler.name, handler.signature, plain_args, plain_kwargs),
        job=handler.name,
        args=plain_args,
        kwargs=plain_kwargs,
        priority=options.priority,
        order=options.order,
        run_after=options.run_after,
        yields=options.run_after is not None,
        expires_at=_expiry(options.expires),
        max_attempts=options.max_attempts,
        max_losses=options.max_losses,
        after_failure=options.after_failure,
        on_retry=options.on_retry,
        atomic=options.atomic,
        time_limit=options.time_limit,
        soft_time_limit=options.soft_time_limit,
        dedup_key=policy.dedup_of(options, handler.name, handler.signature, plain_args, plain_kwargs),
        labels=dict(options.labels),
    )


def _expiry(expires: float | datetime | None) -> Any:
    return ledger.later(expires) if isinstance(expires, int | float) else expires
