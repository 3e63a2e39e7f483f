"""`@job`: makes a function of a module a job."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, Unpack, overload

from groupjobs import compat, registry
from groupjobs.compat import Task
from groupjobs.errors import Refused
from groupjobs.jobs.definition import Job, RefusedJob, check_backend, path_of, unknown_option
from groupjobs.jobs.options import Options
from groupjobs.policy import OPTIONS, validate

P = ParamSpec("P")
R = TypeVar("R")
Hook = TypeVar("Hook", bound=Callable[..., Any])


class Decorator(Protocol):
    """What `@job(...)` returns."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Job[P, R]: ...


class ContextDecorator(Protocol):
    """What `@job(takes_context=True, ...)` returns: callers do not pass the context."""

    @overload
    def __call__(self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Any, P], R], /) -> Job[P, R]: ...


@overload
def job(function: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
@overload
def job(function: Callable[P, R], /) -> Job[P, R]: ...
@overload
def job(*, takes_context: Literal[False] = False, **options: Unpack[Options]) -> Decorator: ...
@overload
def job(*, takes_context: Literal[True], **options: Unpack[Options]) -> ContextDecorator: ...
def job(function: Any = None, /, **options: Any) -> Any:
    """Make a module-level function a job, bare or with options.

    Raises Refused, naming the option and the job, at import: for an unknown option, a value of a wrong
    type or range, a group template that names no argument, a name that is taken.
    """
    if function is None:
        return lambda func: _made(func, options)
    return _made(function, options)


def _made(func: Any, options: Mapping[str, Any]) -> Any:
    name = options.get("name")
    label = name if isinstance(name, str) and name else path_of(func)
    if isinstance(func, Task) or not callable(func) or path_of(func).endswith("<lambda>"):
        raise RefusedJob("@job decorates a function; options are given by name: @job(group=...)", job=label)
    if "run_after" in options:
        raise RefusedJob("run_after belongs to a call; give it to using()", job=label, subject="run_after")
    for option in options.keys() - {"backend", *OPTIONS}:
        unknown_option(label, option, {"backend", *OPTIONS})
    try:
        validate(label, {"name": label} | {option: value for option, value in options.items() if option != "backend"})
        if "backend" in options:
            check_backend(label, options["backend"])
        made: Job[..., Any] = Job(func=func, **{"backend": compat.own_alias(), **options})
        registry.register(made, made.job_name, made.aliases)
    except Refused as error:
        raise RefusedJob.of(error, label) from None
    return made


def atomic_hook(hook: Hook) -> Hook:
    """Mark an `on_abandoned` callable: its writes and the acknowledgement of the report are one commit."""
    hook.groupjobs_atomic = True  # type: ignore[attr-defined]
    return hook
