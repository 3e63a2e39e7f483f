"""The Redis side of a queue: who goes next. Holds ids and numbers only, never payloads."""

from groupjobs.store import keys, replies
from groupjobs.store.connect import connect, store_for
from groupjobs.store.replies import Consumer, EpochChanged, Lease, Outcome, Publication, Reservation
from groupjobs.store.store import Store

__all__ = [
    "Consumer",
    "EpochChanged",
    "Lease",
    "Outcome",
    "Publication",
    "Reservation",
    "Store",
    "connect",
    "keys",
    "replies",
    "store_for",
]
