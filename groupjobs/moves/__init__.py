"""The moves of a run: row, Redis and signal in the one order that gives every crash window one meaning.

A reservation writes Redis, then the row; every other move writes the row, then Redis.
"""

from groupjobs.moves.ending import end
from groupjobs.moves.holding import cancel_line, hold, remind, resume
from groupjobs.moves.publishing import REDIS_ERRORS, publish, publish_later
from groupjobs.moves.settling import Item, outcome, settle
from groupjobs.moves.withdrawing import withdraw

__all__ = [
    "REDIS_ERRORS",
    "Item",
    "cancel_line",
    "end",
    "hold",
    "outcome",
    "publish",
    "publish_later",
    "remind",
    "resume",
    "settle",
    "withdraw",
]
