"""Everything that groupjobs raises, and the interrupts that a handler may raise.

Interrupts derive from BaseException, so that an `except Exception` in a handler cannot swallow them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

LONGEST: Final = 10 * 365.25 * 86400.0  # seconds of a pause


class GroupJobsError(Exception):
    """Base class of the errors that are reported to a caller."""


class Refused(GroupJobsError, ValueError):
    """An option or argument that cannot be taken; nothing was written.

    `job` is the name of the job, `subject` the option or argument, `problem` what is wrong and how to
    mend it; the message says them all.
    """

    def __init__(self, problem: str, *, job: str = "", subject: str = "") -> None:
        ending = "" if problem.endswith((".", "?")) else "."
        super().__init__(f"Job {job!r}: {problem}{ending}" if job else problem)
        self.problem = problem
        self.job = job
        self.subject = subject


class RefusedArgument(Refused, TypeError):
    """The arguments of a call are no JSON, or do not fit the job's signature."""


class UnknownJob(GroupJobsError, LookupError):
    """A run names a job that this process cannot find: not registered, and no path to a task."""


class RunFailed(GroupJobsError):
    """In a result: the handler raised, and the class of its exception cannot be imported here."""


class RunAbandoned(GroupJobsError):
    """In a result: the queue gave the run up; the message is the reason."""


class RunCancelled(GroupJobsError):
    """In a result: the run was cancelled or expired; the message is the reason."""


class Interrupt(BaseException):
    """Base class of what ends an attempt in another way than success or failure."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Retry(Interrupt):
    """Raised by a handler: this attempt failed, try again.

    `after` is the pause in seconds or a timedelta, None for the job's own back-off. It counts as a
    failed attempt: when none is left, the run ends as FAILED. Raises ValueError for a pause that is
    no number from 0 to ten years.
    """

    def __init__(self, after: float | timedelta | None = None, reason: str = "") -> None:
        super().__init__(reason)
        self.after: float | None = None if after is None else _seconds(after)


class Cancel(Interrupt):
    """Raised by a handler: end this run as CANCELLED, with a reason."""


class Hold(Interrupt):
    """Raised by a handler: give this run back and hold its group until a person resumes it."""


class SoftTimeLimit(Interrupt):
    """Raised in a handler that lasts longer than its `soft_time_limit`; it may tidy up. A failed attempt."""

    def __init__(self, reason: str = "The run lasts longer than its soft time limit.") -> None:
        super().__init__(reason)


class TimedOut(GroupJobsError):
    """In a result: the run lasted longer than its `time_limit`, and its process was killed."""


class LeaseLost(Interrupt):
    """Raised in a handler whose run has gone to another worker: whatever it does now is not recorded."""


def _seconds(after: float | timedelta) -> float:
    seconds: Any = after.total_seconds() if isinstance(after, timedelta) else after
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST:
        raise ValueError(f"Retry(after=...) takes seconds from 0 (up to ten years) or a timedelta, not {after!r}.")
    return float(seconds)
