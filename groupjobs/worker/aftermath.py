"""The aftermath of a kill: rows learn from the next child of the pool why an execution of the worker has ended.

Redis hears of it from the watchdog, and may forget it. A child, because the main process must not fork while
it talks to a database; in a thread, because Celery kills children that are slow to begin.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from groupjobs import ledger, moves
from groupjobs.consumer.patience import Patience, Stopped
from groupjobs.watchdog.home import Home, Killed
from groupjobs.watchdog.processes import DEAD, look
from groupjobs.worker import identity

logger = logging.getLogger("groupjobs")

DYING: Final = 5.0  # seconds that a process may take to end once it is to be killed
LOOK: Final = 0.02
REASON: Final = "its process was killed"


def settle_soon(home: Home) -> None:
    """Settle what the watchdog has killed, in a thread of this child; nothing happens where it has killed nobody."""
    if home.killed.all():
        threading.Thread(target=_insist, args=(home,), name="groupjobs-aftermath", daemon=True).start()


def _insist(home: Home) -> None:
    try:
        Patience(identity.stopping).database(lambda: settle(home))
    except Stopped:
        pass
    except Exception:
        logger.exception("What the watchdog has killed could not be settled; Redis and recovery decide.")
    finally:
        ledger.forget_connection()


def settle(home: Home) -> None:
    """Settle the rows of killed executions. Raises what a lost connection to the database raises.

    A run that lasted longer than its limit has timed out; whatever else the process had is lost without a loss.
    """
    for nonce, killed in home.killed.all().items():
        if _dead(killed):
            for run in ledger.running_with(killed["queue"], nonce):
                if killed["over"] and (run.pk, run.fence) == (killed["run"], killed["fence"]):
                    moves.time_out(run)
                    moves.place_anew(ledger.rows([run.pk]))
                else:
                    moves.lose(run, counted=False, reason=REASON)
            home.killed.take(nonce)


def _dead(killed: Killed) -> bool:
    """Whether the process is dead, after a short wait; False when the kill did not reach it."""
    until = time.monotonic() + DYING
    while (seen := look(killed["pid"])) is not None and seen.state not in DEAD and seen.start == killed["start"]:
        if time.monotonic() > until:
            return False
        time.sleep(LOOK)
    return True
