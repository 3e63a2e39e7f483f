"""The moves of a run: row, Redis and signal in the one order that gives every crash window one meaning.

A reservation writes Redis, then the row; every other move writes the row, then Redis.
"""

from groupjobs.moves.ending import end, tell_lost
from groupjobs.moves.holding import announce_hold, cancel_line, hold, limit, mirror_groups, remind, resume
from groupjobs.moves.losing import lose, lose_all
from groupjobs.moves.publishing import REDIS_ERRORS, place_anew, publication, publish, publish_later
from groupjobs.moves.settling import Item, Settled, outcome, settle
from groupjobs.moves.telling import announce, heard
from groupjobs.moves.timing import time_out
from groupjobs.moves.withdrawing import withdraw

__all__ = [
    "REDIS_ERRORS",
    "Item",
    "Settled",
    "announce",
    "announce_hold",
    "cancel_line",
    "end",
    "heard",
    "hold",
    "limit",
    "lose",
    "lose_all",
    "mirror_groups",
    "outcome",
    "place_anew",
    "publication",
    "publish",
    "publish_later",
    "remind",
    "resume",
    "settle",
    "tell_lost",
    "time_out",
    "withdraw",
]
