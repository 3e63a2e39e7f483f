"""What users import: `@job`, and the class of what it makes."""

from groupjobs.jobs.decorator import atomic_hook, job
from groupjobs.jobs.definition import Job, RefusedJob, path_of

__all__ = ["Job", "RefusedJob", "atomic_hook", "job", "path_of"]
