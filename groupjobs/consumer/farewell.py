"""Sign off: the last outcomes, then the end of this consumer; in the background when Redis is down."""

from __future__ import annotations

import threading
import time

from groupjobs.consumer.batch import Book
from groupjobs.moves import REDIS_ERRORS


def farewell(book: Book) -> None:
    """Tell Redis that this execution has ended. Its process lives on, so nobody else can know."""
    try:
        _sign_off(book)
    except REDIS_ERRORS:
        threading.Thread(target=_insist, args=(book,), name="groupjobs-farewell", daemon=True).start()


def _sign_off(book: Book) -> None:
    book.step(0)
    book.store.reap(consumer=book.consumer.nonce)


def _insist(book: Book) -> None:
    pause = 0.2
    while True:
        time.sleep(pause)
        try:
            return _sign_off(book)
        except REDIS_ERRORS:
            pause = min(2 * pause, 5.0)
