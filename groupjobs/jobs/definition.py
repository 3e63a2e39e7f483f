"""A job: a task with a group and options. Importing this loads no models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final, Generic, ParamSpec, Self, TypeVar, Unpack

from groupjobs import compat, registry
from groupjobs.compat import InvalidTask, TaskResult
from groupjobs.errors import Refused
from groupjobs.jobs.options import Call, Key, Overrides, Seconds
from groupjobs.policy import OPTIONS, WORKER_OPTIONS, check_key, suggestion, validate

P = ParamSpec("P")
R = TypeVar("R")


class RefusedJob(Refused, InvalidTask):
    """A job's definition, or one `using()` of it, that cannot be taken."""

    @classmethod
    def of(cls, error: Refused | InvalidTask, job: str) -> RefusedJob:
        """The same words under this class."""
        if isinstance(error, Refused):
            return cls(error.problem, job=job, subject=error.subject)
        return cls(str(error), job=job)


@dataclass(frozen=True, kw_only=True, repr=False)
class Job(compat.GenericTask[P, R], Generic[P, R]):
    """A django.tasks Task with a group and the options of groupjobs; made by `@job`.

    `job_name` is what rows carry: the option `name`, by default the function's path.
    """

    func: Callable[..., R]
    priority: int = 0
    backend: str = compat.BUILT_IN
    queue_name: str = "default"
    run_after: datetime | None = None
    takes_context: bool = False
    name: str = ""
    job_name: str = ""
    aliases: tuple[str, ...] = ()
    group: Key | None = None
    literal_group: str | None = None
    order: int = 0
    max_attempts: int = 1
    retry_on: tuple[type[Exception], ...] = (Exception,)
    backoff: float | tuple[float, ...] | Callable[[int], Seconds] | None = None
    on_retry: str = "block"
    max_losses: int = 2
    after_failure: str = "continue"
    atomic: bool = False
    time_limit: float | None = None
    soft_time_limit: float | None = None
    expires: float | datetime | None = None
    dedup: Key | None = None
    on_duplicate: str = "skip"
    on_abandoned: Callable[..., object] | None = None
    labels: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Refuse unknown options with a hint, also those of a plain `@task`."""
        for name in options.keys() - FIELDS:
            unknown_option(path_of(options.get("func")), name, OPTIONS)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        label = self.job_name or self.name or path_of(self.func)
        try:
            self._normalise(label)
            super().__post_init__()
            parameters = registry.call_signature(self.func, self.takes_context)
            check_key(label, "group", self.group, parameters)
            check_key(label, "dedup", self.dedup, parameters)
        except (Refused, InvalidTask) as error:
            raise RefusedJob.of(error, label) from None

    def _normalise(self, label: str) -> None:
        given = {name: getattr(self, name) for name in CHECKED if name != "name" or self.name}
        normal = validate(label, given)
        for option in ("run_after", "expires"):
            if isinstance(normal[option], datetime):
                normal[option] = registry.checked_moment(label, option, normal[option])
        normal["job_name"] = label
        normal.setdefault("name", getattr(self.func, "__name__", label))
        for name, value in normal.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.job_name}>"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        base = _base(self.job_name)
        changed = {name: getattr(self, name) for name in FIELDS if getattr(self, name) != getattr(base, name)}
        return _again, (self.job_name, changed)

    def get_backend(self) -> Any:
        """The backend that enqueues this job: always groupjobs' own."""
        return compat.backend_for(self.backend)

    def using(self, **overrides: Unpack[Overrides]) -> Self:
        """The same job with other options for its next calls; Refused names a wrong one.

        `group` is taken as it is, not as a template; None makes the run ungrouped.
        """
        return replace(self, **_changes(self.job_name, dict(overrides)))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[P, R]:
        """Write a run in the current transaction, to be executed after its commit.

        Raises Refused, and writes nothing, when the arguments cannot be taken.
        """
        return super().enqueue(*args, **kwargs)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[P, R]:
        """See `enqueue`."""
        return await super().aenqueue(*args, **kwargs)

    def enqueue_many(self, calls: Iterable[Call]) -> list[TaskResult[P, R]]:
        """Enqueue one run per call, all or nothing; the results are in the same order.

        A call is a dict of named arguments, or a pair (args, kwargs). Raises Refused, and writes
        nothing, when one of them cannot be taken.
        """
        results: list[TaskResult[P, R]] = self.get_backend().enqueue_many(self, _pairs(self.job_name, calls))
        return results

    async def aenqueue_many(self, calls: Iterable[Call]) -> list[TaskResult[P, R]]:
        """See `enqueue_many`."""
        results: list[TaskResult[P, R]] = await self.get_backend().aenqueue_many(self, _pairs(self.job_name, calls))
        return results


FIELDS: Final = frozenset(option.name for option in fields(Job))
CHECKED: Final = tuple(name for name in ("literal_group", *OPTIONS))
UNCHANGED: Final = ("priority", "queue_name", "run_after", "backend")  # by None in using(), as in Django


def unknown_option(job: str, name: str, known: Iterable[str]) -> None:
    """Raise RefusedJob for an option that there is none of, with a hint."""
    raise RefusedJob(f"there is no option {name!r};{suggestion(name, known)}", job=job, subject=name)


def path_of(func: Any) -> str:
    """The dotted path of a function; for anything else how it shows itself."""
    name = getattr(func, "__qualname__", None)
    return f"{func.__module__}.{name}" if name else repr(func)


def _changes(job: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    changes = {name: value for name, value in overrides.items() if value is not None or name not in UNCHANGED}
    for name in changes:
        if name in WORKER_OPTIONS:
            problem = f"{name} cannot be given in using(), because the worker reads it from the code; give it to @job"
            raise RefusedJob(problem, job=job, subject=name)
        if name not in Overrides.__annotations__:
            unknown_option(job, name, Overrides.__annotations__)
    if "group" in changes:
        changes["literal_group"] = _literal(job, changes.pop("group"))
    if "backend" in changes:
        check_backend(job, changes["backend"])
    return changes


def _literal(job: str, group: Any) -> str:
    if group is None:
        return ""
    if isinstance(group, str) and group:
        return group
    raise RefusedJob(f"group must be the finished text, or None for ungrouped, not {group!r}", job=job, subject="group")


def check_backend(job: str, alias: str) -> None:
    """Refused unless groupjobs serves this alias; InvalidTaskBackend when there is none of that name."""
    if alias != compat.BUILT_IN and not compat.is_own(alias):
        compat.task_backends[alias]  # an unknown alias is Django's to report
        problem = f"backend={alias!r} is not served by {compat.BACKEND}; a job needs it (tests: groupjobs.testing)"
        raise RefusedJob(problem, job=job, subject="backend")


def _pairs(job: str, calls: Iterable[Call]) -> list[tuple[Sequence[Any], Mapping[str, Any]]]:
    pairs: list[tuple[Sequence[Any], Mapping[str, Any]]] = []
    for index, call in enumerate(calls):
        match call:
            case Mapping():
                pairs.append(((), call))
            case (list() | tuple() as args, Mapping() as kwargs):
                pairs.append((args, kwargs))
            case _:
                problem = f"call {index + 1} must be a dict of arguments or a pair (args, kwargs), not {call!r}"
                raise RefusedJob(problem, job=job)
    return pairs


def _base(name: str) -> Any:
    handler = registry.resolve(name)
    if handler is None:
        raise ValueError(f"Expected {name!r} to point to a Task instance.")
    return handler.task


def _again(name: str, changed: dict[str, Any]) -> Any:
    """A pickled job: the one of this name as this process knows it, with the same overrides."""
    return replace(_base(name), **changed)
