"""Durable grouped jobs for Django: runs of one group execute one at a time, in order.

Names are imported when they are first used, so that `from groupjobs import job` works anywhere, also
before Django's apps are loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from groupjobs.celery import install as install
    from groupjobs.errors import Cancel as Cancel
    from groupjobs.errors import GroupJobsError as GroupJobsError
    from groupjobs.errors import Hold as Hold
    from groupjobs.errors import LeaseLost as LeaseLost
    from groupjobs.errors import Refused as Refused
    from groupjobs.errors import Retry as Retry
    from groupjobs.errors import SoftTimeLimit as SoftTimeLimit
    from groupjobs.jobs import atomic_hook as atomic_hook
    from groupjobs.jobs import job as job
    from groupjobs.tracking import aprogress as aprogress
    from groupjobs.tracking import progress as progress
    from groupjobs.waiting import wait as wait

EXPORTS: Final = {
    "Cancel": "groupjobs.errors",
    "GroupJobsError": "groupjobs.errors",
    "Hold": "groupjobs.errors",
    "LeaseLost": "groupjobs.errors",
    "Refused": "groupjobs.errors",
    "Retry": "groupjobs.errors",
    "SoftTimeLimit": "groupjobs.errors",
    "aprogress": "groupjobs.tracking",
    "atomic_hook": "groupjobs.jobs",
    "install": "groupjobs.celery",
    "job": "groupjobs.jobs",
    "progress": "groupjobs.tracking",
    "wait": "groupjobs.waiting",
}

__all__ = [
    "Cancel",
    "GroupJobsError",
    "Hold",
    "LeaseLost",
    "Refused",
    "Retry",
    "SoftTimeLimit",
    "aprogress",
    "atomic_hook",
    "install",
    "job",
    "progress",
    "wait",
]


def __getattr__(name: str) -> Any:
    if name not in EXPORTS:
        raise AttributeError(f"module 'groupjobs' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(EXPORTS[name]), name)
    return value
