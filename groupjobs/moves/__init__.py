"""The moves of a run: row, Redis and signal in the one order that gives every crash window one meaning.

A reservation writes Redis, then the row; every other move writes the row, then Redis.
"""

from groupjobs.moves.ending import end
from groupjobs.moves.holding import cancel_line, hold, mirror_groups, remind, resume
from groupjobs.moves.losing import lose
from groupjobs.moves.publishing import REDIS_ERRORS, publication, publish, publish_later
from groupjobs.moves.settling import Item, outcome, settle
from groupjobs.moves.withdrawing import withdraw

__all__ = [
    "REDIS_ERRORS",
    "Item",
    "cancel_line",
    "end",
    "hold",
    "lose",
    "mirror_groups",
    "outcome",
    "publication",
    "publish",
    "publish_later",
    "remind",
    "resume",
    "settle",
    "withdraw",
]
