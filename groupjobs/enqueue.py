"""Enqueue: write runs in the caller's own transaction and publish them when it commits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from groupjobs import ledger, moves, policy, registry

if TYPE_CHECKING:
    from groupjobs.models import JobRun

Call = tuple[Sequence[Any], Mapping[str, Any]]


def enqueue_runs(task: Any, calls: Sequence[Call]) -> list[JobRun]:
    """Enqueue one run per call of (args, kwargs), all or nothing; answers the rows in the same order.

    Raises `errors.Refused` before anything is written when a call's arguments are no JSON, do not fit
    the signature, or give no valid group. Does not fail because Redis or the broker is down.
    """
    handler = registry.handler_of(task)
    lines = [_line(handler, args, kwargs) for args, kwargs in calls]
    if not lines:
        return []
    runs = ledger.insert(_batch(handler, lines))
    moves.publish_later(runs, ledger.alias())
    return runs


def _line(handler: registry.Handler, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ledger.Line:
    options, names = handler.policy, tuple(handler.signature.parameters)
    plain_args, plain_kwargs = policy.json_checked(handler.name, args, kwargs, names)
    group = policy.group_of(options, handler.name, handler.signature, plain_args, plain_kwargs)
    dedup = policy.dedup_of(options, handler.name, handler.signature, plain_args, plain_kwargs)
    return group, json.dumps(plain_args), json.dumps(plain_kwargs), dedup


def _batch(handler: registry.Handler, lines: Sequence[ledger.Line]) -> ledger.Batch:
    options = handler.policy
    return ledger.Batch(
        queue=options.queue_name,
        job=handler.name,
        lines=lines,
        priority=options.priority,
        order=options.order,
        run_after=options.run_after,
        expires=options.expires,
        max_attempts=options.max_attempts,
        max_losses=options.max_losses,
        after_failure=options.after_failure,
        on_retry=options.on_retry,
        atomic=options.atomic,
        time_limit=options.time_limit,
        soft_time_limit=options.soft_time_limit,
        labels=options.labels,
    )
