"""Hold and open groups: the row first, with a version that grows; Redis ignores an older version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from groupjobs import bell, ledger
from groupjobs.moves.publishing import REDIS_ERRORS, outage
from groupjobs.moves.telling import announce
from groupjobs.moves.withdrawing import withdraw
from groupjobs.signals import group_held, group_resumed, run_cancelled
from groupjobs.store import store_for

if TYPE_CHECKING:
    from groupjobs.models import JobGroup

PAGE = 500


def hold_row(queue: str, group: str, reason: str, by: str = "") -> JobGroup | None:
    """Write that a group is held; None when it was held already. Redis is told with `tell`."""
    return ledger.set_hold(queue, group, True, reason, by)


def tell(row: JobGroup) -> bool:
    """Tell Redis what the row says. False when Redis is down: the sweep mirrors it later."""
    rate = (row.rate_count, row.rate_seconds) if row.rate_count and row.rate_seconds else None
    try:
        store_for(row.queue).hold(row.group, row.version, row.held, row.group_concurrency, rate)
    except REDIS_ERRORS as error:
        outage.failed(error, "holds are in the database and will be mirrored when it is back")
        return False
    if not row.held:
        bell.ring(row.queue)
    return True


def hold(queue: str, group: str, reason: str = "", by: str = "") -> bool:
    """Stop a group ('' is the whole queue) until somebody resumes it. False when it was held already."""
    row = hold_row(queue, group, reason, by)
    return row is not None and (tell_anew(row) or True)


def tell_anew(row: JobGroup) -> bool:
    """Tell whoever listens, then Redis, of a hold that was just written or ended."""
    announce_hold(row)
    return tell(row)


def announce_hold(row: JobGroup) -> None:
    """Tell whoever listens that a group was held or opened."""
    signal = group_held if row.held else group_resumed
    announce(signal, queue=row.queue, group=row.group, reason=row.reason, by=row.by)


def resume(queue: str, group: str, by: str = "") -> bool:
    """Open a held group, or with '' the whole queue. False when it was open already."""
    row = ledger.set_hold(queue, group, False, "", by)
    return row is not None and (tell_anew(row) or True)


def limit(queue: str, group: str, concurrency: int | None, rate: tuple[int, float] | None, by: str = "") -> bool:
    """Give a group limits of its own, None for the queue's. False when it has them already."""
    row = ledger.set_limits(queue, group, concurrency, rate, by)
    return row is not None and (tell(row) or True)


def remind(queue: str, group: str) -> None:
    """Tell Redis again what the rows of a group and of its queue say, after it served a group that is held."""
    for name in {group, ""}:
        row = ledger.group_row(queue, name)
        if row is not None:
            tell(row)


def reason_after(after_failure: str, run: int) -> str:
    """Why a group is held after one of its runs ended in failure."""
    return f"after_failure={after_failure}: run {run} ended"


_CANCELLING: Final = re.compile(reason_after("cancel", 0).replace("0", r"(\d+)"))


def cancel_line(queue: str, group: str, failed: int) -> int:
    """Cancel the runs that waited in a group when `failed` ended, page by page. Answers how many.

    Then the group is opened, if that is why it is held. Who dies in the middle leaves it held, and
    `mirror_groups` goes on.
    """
    count, reason = 0, f"run {failed} of the group ended in failure"
    while page := ledger.cancel_waiting(queue, group, failed, reason, PAGE):
        withdraw(queue, [(run, group, life) for run, life, _ in page])
        for run, _, job in page:
            announce(run_cancelled, run=run, queue=queue, job=job, group=group, reason=reason)
        count += len(page)
    row = ledger.group_row(queue, group)
    if row is not None and row.held and row.reason == reason_after("cancel", failed):
        resume(queue, group)
    return count


def mirror_groups(queue: str) -> int:
    """Tell Redis of every group of a queue on which somebody set something; older versions are ignored there."""
    after, count = 0, 0
    while page := ledger.group_page(queue, after, PAGE):
        count += sum(tell(row) for row in page)
        for row in page:
            if row.held and (found := _CANCELLING.fullmatch(row.reason)):
                cancel_line(queue, row.group, int(found[1]))
        after = page[-1].pk
    return count
