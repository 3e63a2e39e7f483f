"""Enqueue: write runs in the caller's own transaction and publish them when it commits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from groupjobs import ledger, moves, policy, registry, tracing

if TYPE_CHECKING:
    from groupjobs.models import JobRun

Call = tuple[Sequence[Any], Mapping[str, Any]]
LONGEST_GROUP: Final = 255


def enqueue_runs(task: Any, calls: Sequence[Call]) -> list[JobRun]:
    """Enqueue one run per call of (args, kwargs), all or nothing; answers the rows in the same order.

    With `dedup`, a call whose key is taken answers the run that has it; the row then says `duplicate`.

    Raises `errors.Refused` before anything is written when a call's arguments are no JSON, do not fit
    the signature, or give no valid group. Does not fail because Redis or the broker is down.
    """
    handler = registry.handler_of(task)
    lines = [_line(handler, args, kwargs) for args, kwargs in calls]
    if not lines:
        return []
    options = handler.policy
    with tracing.enqueuing(options.queue_name, handler.name, len(lines), options.labels) as labels:
        runs = _insert(handler, _batch(handler, lines, labels))
        moves.publish_later([run for run in runs if not run.duplicate], ledger.alias())
    return runs


def _insert(handler: registry.Handler, batch: ledger.Batch) -> list[JobRun]:
    if handler.policy.dedup is None:
        return ledger.insert(batch)
    names = (handler.name, *getattr(handler.task, "aliases", ()))
    return ledger.insert_once(batch, handler.policy.on_duplicate, names)


def _line(handler: registry.Handler, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ledger.Line:
    options, names = handler.policy, tuple(handler.signature.parameters)
    plain_args, plain_kwargs = policy.json_checked(handler.name, args, kwargs, names)
    group = policy.group_of(options, handler.name, handler.signature, plain_args, plain_kwargs)
    dedup = policy.dedup_of(options, handler.name, handler.signature, plain_args, plain_kwargs)
    if dedup is not None and not group and options.on_duplicate == "coalesce":
        group = f"{handler.name} {dedup}"[-LONGEST_GROUP:]  # else the one that runs and the one that waits would meet
    return group, json.dumps(plain_args), json.dumps(plain_kwargs), dedup


def _batch(handler: registry.Handler, lines: Sequence[ledger.Line], labels: Mapping[str, Any]) -> ledger.Batch:
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
        coalesces=options.dedup is not None and options.on_duplicate == "coalesce",
        labels=labels,
    )
