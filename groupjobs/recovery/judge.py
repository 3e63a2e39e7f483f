"""The first pass: a page of rows, then Redis asked about those ids, then guarded moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from groupjobs import ledger, lifecycle, moves
from groupjobs.lifecycle import EntrySeen, RowSeen, Verdict
from groupjobs.recovery.leaks import mend_groups
from groupjobs.recovery.report import Report, Scope
from groupjobs.store import Store
from groupjobs.store.keys import line_name
from groupjobs.store.replies import Entry, Snapshot

if TYPE_CHECKING:
    from groupjobs.models import JobRun


UNPUBLISHED: Final = "not published: Redis did not answer when it was enqueued"


def seen_row(run: JobRun) -> RowSeen:
    """What decides, of a row as it was read."""
    return RowSeen(run.status, run.fence, run.life, run.alone, run.losses, run.max_losses)


def seen_entry(entry: Entry | None) -> EntrySeen | None:
    """What decides, of an entry in Redis."""
    if entry is None:
        return None
    leased = entry.place == "leased"
    return EntrySeen(
        leased, entry.life, entry.fence, entry.alone > 0, entry.ghost, entry.silent, entry.interrupted, entry.overdue
    )


class Judge:
    """Judges pages of one queue's live rows and carries the verdicts out."""

    def __init__(self, store: Store, queue: str, scope: Scope, report: Report) -> None:
        self.store = store
        self.queue = queue
        self.scope = scope
        self.report = report
        self.silent: set[str] = set()
        self.ghosts: dict[tuple[str, str], int] = {}  # ghost -> runs that it had reserved and not begun

    def page(self, runs: Sequence[JobRun]) -> bool:
        """Judge these rows; False when Redis is rebuilding and nothing may be judged."""
        snapshot = self.store.snapshot([(run.pk, line_name(run.group, run.pk)) for run in runs])
        if snapshot.state not in ("open", "paused"):
            return False
        self.ghosts.clear()
        publish: list[JobRun] = []
        for run in runs:
            self._judge(run, snapshot, publish)
        if not self.scope_spent():
            self._publish(publish)
            self._release(snapshot)
        return True

    def start_again(self) -> None:
        """Judge everything once more: what was only looked at is counted anew."""
        self.silent.clear()
        self.report.counts["examined"] = self.report.counts["kept"] = 0
        self.report.details = [line for line in self.report.details if line["verdict"] != "kept"]

    def scope_spent(self) -> bool:
        """Whether as many runs were moved as the scope allows."""
        return self.scope.limit is not None and self.report.moved() >= self.scope.limit

    def _judge(self, run: JobRun, snapshot: Snapshot, publish: list[JobRun]) -> None:
        self.report.count("examined")
        entry = snapshot.entries.get(run.pk)
        seen = seen_entry(entry)
        found = lifecycle.verdict(seen_row(run), seen)
        if found.word == lifecycle.FINE or self.scope_spent():
            return
        if found.word == lifecycle.KEPT:
            self._keep(run, entry, found)
            return
        if entry is not None and entry.ghost:
            released = found.word == lifecycle.RELEASE and not self.scope.abandon
            ghost = (entry.consumer, entry.worker)
            self.ghosts[ghost] = self.ghosts.get(ghost, 0) + released
        if found.word == lifecycle.PUBLISH:
            self._publish_later(run, publish, found)
        elif self.scope.abandon or found.word == lifecycle.LOST:
            self._lose(run, seen, found)
        else:
            self._detail(run, "released", found.reason, entry.worker if entry else "")

    def _publish_later(self, run: JobRun, publish: list[JobRun], found: Verdict) -> None:
        limit = self.scope.limit
        if limit is None or self.report.moved() + len(publish) < limit:
            publish.append(run)
            told = run.unpublished and found.reason == lifecycle.UNKNOWN
            self._detail(run, "republished", UNPUBLISHED if told else found.reason)

    def _keep(self, run: JobRun, entry: Entry | None, found: Verdict) -> None:
        if entry is not None and entry.silent:
            self.silent.add(entry.worker)
        if run.status == lifecycle.RUNNING:
            self.report.count("kept")
            self._detail(run, "kept", found.reason, run.worker)

    def _lose(self, run: JobRun, entry: EntrySeen | None, found: Verdict) -> None:
        if run.status == lifecycle.RUNNING and entry is not None and entry.overdue and not self.scope.abandon:
            self._time_out(run)
            return
        counted = lifecycle.loss_counts(seen_row(run), entry)
        condemned = self.scope.abandon or lifecycle.condemned(seen_row(run), counted)
        word = "abandoned" if condemned else "released" if run.cancel_requested_at else "requeued"
        if not self.report.dry_run:
            word = self._move(run, counted, found)
        if word:
            self.report.count(word)
            self._detail(run, word, found.reason, run.worker)

    def _time_out(self, run: JobRun) -> None:
        """The watchdog killed its attempt: a failed try. The entry gets the time of the next one."""
        word, reason = "released", "lasted longer than its time limit"
        if not self.report.dry_run:
            word = word if moves.time_out(run)[0] else ""
            moves.place_anew(ledger.rows([run.pk]))
        if word:
            self.report.count(word)
            self._detail(run, word, reason, run.worker)

    def _move(self, run: JobRun, counted: bool, found: Verdict) -> str:
        if run.status == lifecycle.RUNNING:
            return moves.lose(run, counted=counted, reason=found.reason, condemn=self.scope.abandon)
        return "abandoned" if moves.end(run, "abandon", lifecycle.REQUESTED) else ""

    def _publish(self, runs: Sequence[JobRun]) -> None:
        if runs and (self.report.dry_run or moves.publish(runs)):
            self.report.count("republished", len(runs))
            if not self.report.dry_run:
                ledger.flag_unpublished([run.pk for run in runs if run.unpublished], False)

    def _release(self, snapshot: Snapshot) -> None:
        """Heal the leases of the ghosts that were seen, and held sets that name runs without a lease."""
        mended = {group for group, state in snapshot.groups.items() if state.strays}
        mend_groups(self.store, self.queue, snapshot, self.report)
        if self.report.dry_run:
            self.report.count("released", sum(self.ghosts.values()))
            return
        for (nonce, worker), reserved in self.ghosts.items():
            if self._reap(nonce, worker):
                self.report.count("released", reserved)
        for group in mended:
            self.report.count("released", self.store.reap(group=group).healed)

    def _reap(self, nonce: str, worker: str) -> int:
        healed, more = 0, True
        while more:
            reply = self.store.reap(worker=worker, consumer=nonce)
            healed, more = healed + reply.healed, reply.healed > 0 and reply.more
        return healed

    def _detail(self, run: JobRun, verdict: str, reason: str, worker: str = "") -> None:
        self.report.detail(run.pk, run.group, self.queue, verdict, reason, worker)
