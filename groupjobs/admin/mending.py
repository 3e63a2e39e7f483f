"""What the buttons do with selected runs: recovery and control, with one kind of answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.utils.translation import gettext as _

from groupjobs import conf, control, ledger, lifecycle, reports
from groupjobs.admin.phrases import phrase
from groupjobs.ledger import parking
from groupjobs.models import JobRun
from groupjobs.recovery import Scope, recover

CHUNK: Final = 500  # runs of one recovery, so that its report names each of them
HOOKS: Final = 2.0  # seconds that a page waits for reports of abandonments
CHANGES: Final = frozenset({"requeued", "abandoned", "republished", "released"})


@dataclass(slots=True)
class Result:
    """Ids of runs that were changed with what became of them, and why the others were not."""

    changed: dict[int, str] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        text = _("%(changed)s changed, %(skipped)s skipped") % {
            "changed": len(self.changed),
            "skipped": len(self.skipped),
        }
        reasons = Counter(self.skipped.values()).most_common()
        if len(reasons) == 1:
            return f"{text}: {reasons[0][0]}"
        return text + (": " + ", ".join(f"{number} {reason}" for reason, number in reasons) if reasons else "")


def recover_runs(runs: Sequence[int], *, abandon: bool = False, dry_run: bool = False) -> Result:
    """Recover these runs, or with `abandon` end those of them that are ghosts.

    Raises what the clients of Redis and the database raise when one of them is down.
    """
    result = Result()
    seen = {row.pk: row for row in rows_of(runs)}
    result.skipped.update({run: _("no longer there") for run in runs if run not in seen})
    for queue, ids in _chunks(seen.values()):
        if queue not in conf.current().queues:
            result.skipped.update(dict.fromkeys(ids, _("its queue is not in the settings")))
            continue
        if not dry_run:
            parking.report_now(ids, reports.PARKED)
        report = recover(Scope(queue=queue, runs=tuple(ids), abandon=abandon), dry_run=dry_run, hooks=HOOKS)
        said = {line["run"]: line for line in report.details}
        for row in rows_of(ids):
            _sort(row, seen[row.pk], said, result, foreseen=dry_run)
    return result


def rows_of(runs: Sequence[int]) -> Iterator[JobRun]:
    """The rows of these ids, without their payload."""
    for start in range(0, len(runs), CHUNK):
        found = JobRun.objects.using(ledger.alias()).filter(pk__in=runs[start : start + CHUNK])
        yield from found.defer("args", "kwargs", "result", "error", "labels").order_by("pk")


def _chunks(rows: Iterable[JobRun]) -> Iterator[tuple[str, list[int]]]:
    queues: dict[str, list[int]] = {}
    for row in rows:
        queues.setdefault(row.queue, []).append(row.pk)
    for queue, ids in sorted(queues.items()):
        for start in range(0, len(ids), CHUNK):
            yield queue, ids[start : start + CHUNK]


def told(report: control.Report, word: str) -> Result:
    """What control reports; `word` says what it did to the runs that it changed."""
    return Result(dict.fromkeys(report.changed, word), {run: reason_of(reason) for run, reason in report.skipped})


def foreseen(runs: Sequence[int], statuses: frozenset[str], word: str) -> Result:
    """What control would do: runs of these statuses are changed, the others are left."""
    result = Result()
    for row in rows_of(runs):
        if row.status in statuses:
            result.changed[row.pk] = word
        else:
            result.skipped[row.pk] = reason_of(f"already {row.status}")
    return result


def reason_of(reason: str) -> str:
    """A reason of control or recovery in the reader's language."""
    known, _blank, status = reason.partition(" ")
    if status in lifecycle.STATUSES:
        return {"already": _("already %s"), "is": _("is %s")}[known] % phrase(status.lower())
    return phrase(reason)


def _sort(row: JobRun, before: JobRun, said: dict[int, dict[str, str]], result: Result, *, foreseen: bool) -> None:
    line = said.get(row.pk, said.get(0))
    if line is not None and line["verdict"] in CHANGES:
        result.changed[row.pk] = line["verdict"]
    elif row.abandon_reported_at != before.abandon_reported_at or (foreseen and _unreported(row)):
        result.changed[row.pk] = "reported"
    else:
        result.skipped[row.pk] = _why(row, line)


def _unreported(row: JobRun) -> bool:
    return row.status == lifecycle.ABANDONED and row.abandon_reported_at is None


def _why(row: JobRun, line: dict[str, str] | None) -> str:
    if row.status in lifecycle.TERMINAL:
        return reason_of(f"already {row.status}")
    return reason_of(line["reason"]) if line else _("waits in its place")
