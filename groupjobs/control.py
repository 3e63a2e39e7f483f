"""What a person may ask of runs, groups and queues: guarded by the state that was seen, harmless when repeated.

Runs are named by their ids. Refused (a ValueError), before anything is written, for what names no run, queue or group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from groupjobs import conf, ledger, moves, registry
from groupjobs.errors import Refused
from groupjobs.lifecycle import LIVE, READY, RUNNING
from groupjobs.policy import checked_ids, checked_key, checked_text, suggestion
from groupjobs.signals import run_cancelled

if TYPE_CHECKING:
    from groupjobs.models import JobRun

PAGE: Final = 500


@dataclass(slots=True)
class Report:
    """Ids of the runs that were changed, and for the others why not."""

    changed: list[int] = field(default_factory=list)
    skipped: list[tuple[int, str]] = field(default_factory=list)

    def __str__(self) -> str:
        reasons = sorted({reason for _, reason in self.skipped})
        why = f": {'; '.join(reasons)}" if reasons else ""
        return f"{len(self.changed)} changed, {len(self.skipped)} skipped{why}"


def _each(runs: Iterable[int | str], act: Callable[[list[JobRun], Report], None]) -> Report:
    report, ids = Report(), checked_ids(runs)
    for start in range(0, len(ids), PAGE):
        page = ids[start : start + PAGE]
        found = ledger.find(page)
        report.skipped += [(run, "no such run") for run in sorted(set(page) - {row.pk for row in found})]
        act(found, report)
    return report


def _note(report: Report, run: JobRun, changed: bool, otherwise: str) -> bool:
    if changed:
        report.changed.append(run.pk)
    else:
        report.skipped.append((run.pk, otherwise))
    return changed


def retry(runs: Iterable[int | str], by: str = "", as_new: bool = False) -> Report:
    """Give ended runs a new life in the same row: budgets start anew, history stays, late words are refused.

    `as_new`: new runs at the end of their lines instead, once for each old one; `changed` names the new ones.
    """
    if as_new:
        return _each(runs, _start_over)
    return _each(runs, lambda found, report: _retry(found, report, _by("retried", by)))


def _by(what: str, who: str) -> str:
    return f"{what} by {checked_text(who)}" if who else what


def _retry(found: list[JobRun], report: Report, reason: str) -> None:
    revived = [run for run in found if _note(report, run, ledger.revive(run, reason), f"already {run.status}")]
    moves.publish(ledger.rows([run.pk for run in revived]))


def _start_over(found: list[JobRun], report: Report) -> None:
    made = []
    for run in found:
        new = ledger.start_over(run)
        if new is None:
            report.skipped.append((run.pk, f"is {run.status}" if run.status in LIVE else "retried already"))
        else:
            report.changed.append(new.pk)
            made.append(new)
    moves.publish(made)


def cancel(runs: Iterable[int | str], by: str = "", force: bool = False) -> Report:
    """Cancel runs: a waiting one at once; a running one is asked, its handler sees `context.cancelled`.

    `force`: the process that runs it is killed (prefork pool only) within a few seconds, also after it was
    asked in vain.
    """
    return _each(runs, lambda found, report: _cancel(found, report, _by("requested", by), force))


def _cancel(found: list[JobRun], report: Report, reason: str, force: bool) -> None:
    told = [run for run in found if _note(report, run, _cancel_row(run, reason, force), _why_not(run))]
    for queue in {run.queue for run in told}:
        moves.withdraw(queue, [(run.pk, run.group, run.life) for run in told if run.queue == queue], force)


def _cancel_row(run: JobRun, reason: str, force: bool) -> bool:
    if run.status == READY:
        cancelled = ledger.transit("cancel", run.pk, READY, run.fence, reason=reason)
        if cancelled:
            about = {"run": run.pk, "queue": run.queue, "job": run.job, "group": run.group}
            moves.announce(run_cancelled, **about, reason=reason)
        return cancelled
    return run.status == RUNNING and (ledger.ask_to_cancel(run) or (force and run.cancel_requested_at is not None))


def _why_not(run: JobRun) -> str:
    if run.status not in LIVE:
        return f"already {run.status}"
    return "asked already" if run.cancel_requested_at else "it has moved in between; look again"


def reschedule(runs: Iterable[int | str], run_after: datetime | None) -> Report:
    """Give waiting runs another time; None means at once. Until then their groups do not wait for them.

    Refused (a ValueError) for what is no time, or a naive one under USE_TZ.
    """
    moment = registry.checked_time(run_after)
    return _each(runs, lambda found, report: _reschedule(found, report, moment))


def _reschedule(found: list[JobRun], report: Report, run_after: datetime | None) -> None:
    moved = [run for run in found if _note(report, run, ledger.reschedule(run, run_after), f"is {run.status}")]
    moves.place_anew(ledger.rows([run.pk for run in moved]))


def skip_head(queue: str, group: str, by: str = "") -> Report:
    """Cancel the first run of a group's line, so that the next one is served."""
    _check_place(queue, group)
    head = ledger.head_of(queue, group)
    return cancel([head.pk], by) if head is not None else Report()


def hold(queue: str, group: str, reason: str = "", by: str = "") -> Report:
    """Stop a group until it is resumed; a run that executes goes on to its end. '' is the whole queue."""
    _check_place(queue, group)
    return _group_report(moves.hold(queue, group, checked_text(reason), checked_text(by)), "held already")


def resume(queue: str, group: str, by: str = "") -> Report:
    """Open a held group, or with '' the whole queue."""
    _check_place(queue, group)
    return _group_report(moves.resume(queue, group, checked_text(by)), "not held")


def limit_group(
    queue: str, group: str, concurrency: int | None = None, rate: tuple[int, float] | None = None, by: str = ""
) -> Report:
    """Give a group limits of its own: consumers at once, and (runs begun, per seconds); None for the queue's.

    Raises ValueError for what is no such limit.
    """
    if not group:
        raise ValueError("limit_group takes a group; limits of a whole queue belong into GROUPJOBS['QUEUES'].")
    _check_place(queue, group)
    concurrency, rate = conf.checked_limits(concurrency, rate)
    return _group_report(moves.limit(queue, group, concurrency, rate, checked_text(by)), "so already")


def _check_place(queue: str, group: str) -> None:
    """Refused unless there is such a queue, and the group is '' or could be one's."""
    known = conf.current().queues
    if queue not in known:
        raise Refused(f"there is no queue {queue!r};{suggestion(queue, known)}", subject="queue")
    if group != "":
        try:
            checked_key(group)
        except ValueError as error:
            raise Refused(f"group {error}", subject="group") from None


def _group_report(changed: bool, otherwise: str) -> Report:
    return Report(changed=[0]) if changed else Report(skipped=[(0, otherwise)])
