"""Enqueue by name, for schedules: a tick that fires twice makes one run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from groupjobs import ledger, registry
from groupjobs.errors import Refused, UnknownJob
from groupjobs.jobs import Job
from groupjobs.policy import suggestion

LABEL: Final = "schedule"  # of runs that a schedule made: their key, also after they have ended


class _Again(Exception):
    """The tick has made a run already, which has ended since."""

    def __init__(self, run: int) -> None:
        self.run = run


def enqueue(
    job: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    group: str | None = None,
    dedup: str | None = None,
    once_in: float | None = None,
) -> int:
    """Enqueue a run of the job with this name; answers its id, or that of the live run with the same key.

    The key is `dedup`, else the job's own, else made of the arguments. `once_in`: seconds in which also an
    ended run with the key counts. `group` is the finished text. Raises UnknownJob, and what `enqueue` raises.
    """
    task = _job(job)
    key = dedup or (_key(args, kwargs or {}) if task.dedup is None else None)
    if group is not None:
        task = task.using(group=group)
    if key is not None:
        task = task.using(dedup=lambda *_, **__: key)
    try:
        with ledger.one_commit():
            return _enqueue(task, args, kwargs or {}, once_in)
    except _Again as again:
        return again.run


def _job(name: str) -> Job[..., Any]:
    handler = registry.resolve(name)
    if handler is None:
        raise UnknownJob(f"There is no job {name!r}.{suggestion(name, registry.registered())}")
    if not isinstance(handler.task, Job):
        raise Refused("it is not served by groupjobs' backend, so no schedule can enqueue it", job=name)
    return handler.task


def _key(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    said = json.dumps([list(args), dict(kwargs)], sort_keys=True, default=str)
    return f"{LABEL}:{hashlib.sha256(said.encode()).hexdigest()[:32]}"


def _enqueue(task: Job[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], once_in: float | None) -> int:
    from groupjobs.models import JobRun

    result = task.enqueue(*args, **kwargs)
    rows = JobRun.objects.using(ledger.alias())
    run = rows.get(pk=result.id)
    if LABEL in run.labels or run.dedup_key is None:
        return run.pk
    if once_in is not None and (ended := ledger.ended_within(run, LABEL, once_in)) is not None:
        raise _Again(ended)
    rows.filter(pk=run.pk).update(labels={**run.labels, LABEL: run.dedup_key})
    return run.pk
