"""The jobs that this process knows, by name: from the name in a row to the code that runs it."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import autodiscover_modules, import_string

from groupjobs.compat import Task
from groupjobs.errors import Refused
from groupjobs.policy import Policy

logger = logging.getLogger("groupjobs")

LONGEST_PAUSE: Final = 600.0  # seconds
MOST_SHAPES: Final = 1000  # of calls of one job; a job that takes any name can be called in as many ways as it likes
POLICY_FIELDS: Final = tuple(option.name for option in fields(Policy))


@dataclass(frozen=True, slots=True)
class Handler:
    """A job as a worker needs it. `signature` is what a caller passes: without the context."""

    name: str
    task: Any
    func: Callable[..., Any]
    policy: Policy
    takes_context: bool
    is_async: bool
    signature: inspect.Signature
    shapes: dict[tuple[Any, ...], bool] = field(default_factory=dict, compare=False, repr=False)

    def fits(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether the signature takes a call with these arguments; it is asked once for each shape of call."""
        shape = (len(args), *kwargs)
        fits = self.shapes.get(shape)
        if fits is None:
            fits = _binds(self.signature, args, kwargs)
            if len(self.shapes) < MOST_SHAPES:
                self.shapes[shape] = fits
        return fits


def _binds(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


_lock = threading.Lock()
_discovery = threading.RLock()  # never taken while a module is imported, other than by `autodiscover` itself
_tasks: dict[str, Any] = {}
_handlers: dict[str, Handler] = {}
_discovered = threading.Event()
_discovering = False


def register(task: Any, name: str, aliases: Iterable[str] = ()) -> None:
    """Make the task known under its name and its former ones; Refused when another function has one of them.

    The same function may register again: a module that is loaded anew replaces what it registered.
    """
    with _lock:
        for known in (name, *aliases):
            other = _tasks.get(known)
            if other is not None and other.module_path != task.module_path:
                problem = f"the name {known!r} belongs to {other.module_path} already; give name=... another value"
                raise Refused(problem, job=task.module_path, subject="name" if known == name else "aliases")
        for known in (name, *aliases):
            _tasks[known] = task
            _handlers.pop(known, None)


def resolve(name: str) -> Handler | None:
    """The job that a row names: registered, an alias, or the path of a task in a module; None if unknown.

    Looks into every app's jobs.py and tasks.py first. An import that fails is logged and means unknown.
    """
    handler = _handlers.get(name)
    if handler is None:
        task = _tasks.get(name) or _found(name)
        if task is None:
            return None
        handler = _handlers[name] = handler_of(task)
    return handler


def _found(name: str) -> Any:
    try:
        autodiscover()
        task = _tasks.get(name) or import_string(name)
    except ImportError:
        return None
    except Exception:
        logger.exception("The job %r cannot be looked up: an import failed.", name)
        return None
    return task if isinstance(task, Task) else None


def registered() -> dict[str, Any]:
    """A copy of the registry: each name and alias with its task."""
    with _lock:
        return dict(_tasks)


def name_of(task: Any) -> str:
    """The name that rows carry: the job's own, for a plain task its path."""
    return str(getattr(task, "job_name", "") or task.module_path)


def handler_of(task: Any) -> Handler:
    """The handler of any task, with the options of this very object (also one that `using()` made)."""
    return Handler(
        name=name_of(task),
        task=task,
        func=task.func,
        policy=policy_of(task),
        takes_context=task.takes_context,
        is_async=inspect.iscoroutinefunction(task.func),
        signature=call_signature(task.func, task.takes_context),
    )


def policy_of(task: Any) -> Policy:
    """The task's options; what a plain task does not have takes its default."""
    given = {name: getattr(task, name) for name in POLICY_FIELDS if hasattr(task, name)}
    for name in ("run_after", "expires"):
        if isinstance(given.get(name), datetime):
            given[name] = checked_moment(name_of(task), name, given[name])
    if given.get("backoff") is None:
        given["backoff"] = default_backoff
    return Policy(**given)


def default_backoff(failures: int) -> float:
    """Seconds: 2 after the first failure, doubled by each further one up to 600, the half of it random."""
    from redis.backoff import EqualJitterBackoff

    return EqualJitterBackoff(cap=LONGEST_PAUSE, base=1).compute(min(failures, 32))


def checked_time(moment: Any) -> datetime | None:
    """A time that a person gave, as the database stores it; None stays None. Refused for anything else."""
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        raise Refused(f"run_after must be a datetime, or None for at once, not {moment!r}", subject="run_after")
    return checked_moment("", "run_after", moment)


def checked_moment(job: str, option: str, moment: datetime) -> datetime:
    """A datetime as the database stores it: aware under USE_TZ (else Refused), local and naive without.

    Refused as well in the first and the last year of the calendar: a database may keep them, and Python not read them.
    """
    if not 2 <= moment.year <= 9998:
        raise Refused(f"{option} must be a time of the years 2 to 9998, not {moment!r}", job=job, subject=option)
    if settings.USE_TZ:
        if timezone.is_naive(moment):
            remedy = "use django.utils.timezone.make_aware()"
            raise Refused(f"{option} must be an aware datetime, not {moment!r}; {remedy}", job=job, subject=option)
        return moment
    return moment if timezone.is_naive(moment) else timezone.make_naive(moment, timezone.get_default_timezone())


@lru_cache(maxsize=4096)
def call_signature(func: Callable[..., Any], takes_context: bool) -> inspect.Signature:
    """What a caller passes: the function's signature, without the context."""
    signature = inspect.signature(func)
    if not takes_context:
        return signature
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def autodiscover() -> None:
    """Import jobs.py and tasks.py of every installed app, once in this process; an import error is raised.

    Safe to call from several threads: the others wait until the first has finished.
    """
    global _discovering
    if _discovered.is_set():
        return
    with _discovery:
        if _discovered.is_set() or _discovering:
            return
        _discovering = True
        try:
            autodiscover_modules("jobs", "tasks")
            _discovered.set()
        finally:
            _discovering = False
