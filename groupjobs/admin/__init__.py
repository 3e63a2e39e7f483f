"""The operator's face in Django's admin: see why a run does not run, and mend it."""

from groupjobs.admin.pages import GroupAdmin
from groupjobs.admin.runs import RunAdmin

__all__ = ["GroupAdmin", "RunAdmin"]
