"""`recover`: rows first, then Redis, then guarded moves; a second pass over what Redis knows."""

from __future__ import annotations

import time
from typing import Final

from groupjobs import bell, conf, ledger, moves, reports
from groupjobs.recovery.entries import drop_dead_entries
from groupjobs.recovery.judge import Judge
from groupjobs.recovery.rebuild import rebuild
from groupjobs.recovery.report import MOVED, Report, Scope
from groupjobs.signals import queue_recovered
from groupjobs.store import Store, store_for

PAGE: Final = 500
LOST: Final = "Redis lost its memory and is being rebuilt; call again"
NEW: Final = "no worker has served the queue yet"
PAUSE: Final = 0.25  # seconds between two looks at a silent worker or a rebuild


def recover(scope: Scope | None = None, dry_run: bool = False, hooks: float = 10.0) -> Report:
    """Find what is stuck or lost in scope and mend it, unless `dry_run`; answers what was found and done.

    Runs of living workers are kept. `hooks` bounds the seconds spent waiting for reports. Raises what
    the database or Redis client raises when one of them is down: nothing is half-done then.
    """
    scope = scope or Scope()
    report = Report(dry_run=dry_run)
    for queue in _queues(scope):
        report.queues.append(queue)
        _recover_queue(queue, scope, report, hooks)
    return report


def _queues(scope: Scope) -> list[str]:
    if scope.queue:
        return [scope.queue]
    return sorted({*conf.current().queues, *ledger.queues_with_live_runs()})


def _recover_queue(queue: str, scope: Scope, report: Report, hooks: float) -> None:
    store, before = store_for(queue), dict(report.counts)
    if not _open(store, queue, scope, report.dry_run):
        report.count("refused")
        report.detail(0, "", queue, "refused", LOST if ledger.was_opened(queue) else NEW)
        return
    _first_pass(Judge(store, queue, scope, report), queue, scope)
    if scope.runs is None and not report.go_on:
        drop_dead_entries(store, queue, scope, report)
    if report.dry_run:
        report.count("reported", report.counts["abandoned"] - before["abandoned"])  # as soon as they are
        _foresee_reports(queue, scope, report)
        return
    if scope.runs is None and scope.group is None:
        moves.mirror_groups(queue)
    report.count("reported", reports.deliver(queue, scope.runs, hooks))
    _ring(store, queue, report)
    if any(report.counts[name] > before.get(name, 0) for name in MOVED):
        counts = {name: number - before.get(name, 0) for name, number in report.counts.items()}
        moves.announce(queue_recovered, queue=queue, group=scope.group, counts=counts)


def _foresee_reports(queue: str, scope: Scope, report: Report) -> None:
    """The abandonments that would be reported now."""
    for run in filter(reports.knows, ledger.unreported(queue, reports.PARKED, scope.runs)):
        report.count("reported")
        why = f"abandoned ({run.reason}); its report was tried {run.report_attempts} times"
        report.detail(run.pk, run.group, queue, "reported", why, run.worker)


def _open(store: Store, queue: str, scope: Scope, dry_run: bool) -> bool:
    """Whether the queue may be judged; rebuilds it first if Redis lost its memory."""
    if store.snapshot([]).state in ("open", "paused"):
        return True
    until = time.monotonic() + scope.patience
    while not dry_run:
        if rebuild(queue):
            return True
        if time.monotonic() > until:
            break
        time.sleep(PAUSE)
    return False


def _first_pass(judge: Judge, queue: str, scope: Scope) -> None:
    silent = _judge_all(judge, queue, scope)
    until = time.monotonic() + scope.patience
    while silent and not judge.report.dry_run and time.monotonic() < until:
        time.sleep(PAUSE)
        judge.store.tick("", 0)  # lets the queue's own clock go on, which alone can judge a silent worker
        silent = _judge_all(judge, queue, scope, again=True)


def _judge_all(judge: Judge, queue: str, scope: Scope, again: bool = False) -> bool:
    if again:
        judge.start_again()
    after, began = scope.after, time.monotonic()
    while not judge.scope_spent():
        page = ledger.live_page(queue, after, PAGE, scope.group, scope.runs)
        if not page or not judge.page(page):
            break
        after = page[-1].pk
        if len(page) == PAGE and scope.spent(began):
            judge.report.go_on = after
            break
    return bool(judge.silent)


def _ring(store: Store, queue: str, report: Report) -> None:
    bells = store.tick("", 0).bells
    if bells:
        bell.ring(queue, bells)
        report.count("rung", bells)
