"""For the tests of a project: run what is ready in this process, and look at what was enqueued.

No Redis, broker or worker is needed, and everything works inside a `TestCase`.
"""

from groupjobs.testing.asserting import assert_enqueued, assert_nothing_enqueued, enqueued
from groupjobs.testing.draining import drain
from groupjobs.testing.memory import in_memory
from groupjobs.testing.modes import JobsMixin, immediate

__all__ = [
    "JobsMixin",
    "assert_enqueued",
    "assert_nothing_enqueued",
    "drain",
    "enqueued",
    "immediate",
    "in_memory",
]
