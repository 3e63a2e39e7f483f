"""Look at what was enqueued and has not begun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from groupjobs import ledger, registry
from groupjobs.lifecycle import READY

if TYPE_CHECKING:
    from groupjobs.models import JobRun


def enqueued(job: Any = None, *, group: str | None = None) -> list[JobRun]:
    """The runs that wait, of one job and of one group if given, in the order in which they were enqueued."""
    from groupjobs.models import JobRun

    runs = JobRun.objects.using(ledger.alias()).filter(status=READY)
    if job is not None:
        runs = runs.filter(job__in=[registry.name_of(job), *getattr(job, "aliases", ())])
    if group is not None:
        runs = runs.filter(group=group)
    return list(runs.order_by("pk"))


def assert_enqueued(
    job: Any, arguments: Mapping[str, Any] | None = None, *, group: str | None = None, count: int | None = None
) -> list[JobRun]:
    """The runs of a job that wait with these arguments (by name, some of them suffice) in this group.

    AssertionError when there is none, or not `count` of them; it lists what waits.
    """
    found = [run for run in enqueued(job, group=group) if _fits(job, run, arguments or {})]
    if len(found) != count if count is not None else not found:
        wanted = f"{'a run' if count is None else f'{count} runs'} of {registry.name_of(job)}"
        raise AssertionError(f"{wanted} with {dict(arguments or {})} expected, {len(found)} found. {_listed()}")
    return found


def assert_nothing_enqueued(job: Any = None) -> None:
    """AssertionError when a run of the job, or any run, waits."""
    found = enqueued(job)
    if found:
        raise AssertionError(f"No run expected, {len(found)} found. {_listed()}")


def _fits(job: Any, run: JobRun, arguments: Mapping[str, Any]) -> bool:
    bound = registry.handler_of(job).signature.bind(*run.args, **run.kwargs)
    bound.apply_defaults()
    return all(name in bound.arguments and bound.arguments[name] == value for name, value in arguments.items())


def _listed() -> str:
    lines = [f"{run.job} args={run.args} kwargs={run.kwargs} group={run.group!r}" for run in enqueued()[:20]]
    return "Waiting: " + ("; ".join(lines) or "nothing")
