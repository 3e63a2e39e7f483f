"""Recovery: one routine, whoever calls it. Idempotent, and safe from many processes at once."""

from groupjobs.recovery.pruning import prune
from groupjobs.recovery.rebuild import rebuild
from groupjobs.recovery.report import COUNTS, Report, Scope
from groupjobs.recovery.routine import recover
from groupjobs.recovery.sweep import sweep

__all__ = ["COUNTS", "Report", "Scope", "prune", "rebuild", "recover", "sweep"]
