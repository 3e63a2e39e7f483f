"""The tables of `groupjobs_status`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

from django.utils.translation import gettext as _
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from groupjobs.explain import NAMES, GroupState, Summary, WorkerFacts, duration, mend_text
from groupjobs.management.status import Status, last_hour, seconds


def shown(status: Status, width: int) -> str:
    """The whole status as text of this width."""
    tables = [_queues(status), _workers(status.queues), _groups(status.groups, status.more)]
    return _printed([table for table in tables if table is not None] + _notes(status), width)


def shown_groups(groups: Sequence[GroupState], width: int) -> str:
    """Each of these groups in full: its state, why, and what to press."""
    return _printed([_group(group) for group in groups], width)


def _printed(parts: Iterable[Any], width: int) -> str:
    console = Console(record=True, file=StringIO(), width=width)
    for part in parts:
        console.print(part)
    return console.export_text().rstrip()


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _row(table: Table, *cells: object) -> None:
    table.add_row(*(escape(str(cell)) for cell in cells))


def _queues(status: Status) -> Table:
    names = (_("Queue"), _("State"), _("Waiting"), _("Running"), _("Ready"), _("Later"), _("Scheduled"), _("Held"))
    table = _table(_("Queues"), *names, _("Workers"), _("Last hour"), _("Drift"))
    for found in status.queues:
        facts, told = found.facts, found.facts.overview
        counts = (told.ready, told.later, told.scheduled, told.held_groups) if told else ("-",) * 4
        look = status.looks.get(facts.name)
        drift = ", ".join(f"{number} {word}" for word, number in look.counts.items()) if look else ""
        hour = last_hour(status.hour.get(facts.name, []))
        ended = _("%(ok)s ok, %(others)s other") % {"ok": hour["succeeded"], "others": hour["others"]}
        _row(table, facts.name, _state(found), found.waiting, found.running, *counts, facts.workers, ended, drift)
    return table


def _state(found: Summary) -> str:
    facts = found.facts
    if facts.state == "down":
        return _("Redis does not answer: %s") % facts.problem
    if facts.state == "unnamed":
        return str(NAMES["unnamed"])
    if facts.pause is not None:
        return ": ".join(filter(None, (_("the queue is paused"), facts.pause.by, facts.pause.reason)))
    if facts.state == "rebuild" and facts.absent:
        return _("nobody serves it")
    if facts.state == "rebuild":
        return _("Redis lost its memory; the queue is being rebuilt from rows.")
    return facts.state


def _workers(queues: Sequence[Summary]) -> Table | None:
    table = _table(
        _("Workers"), _("Worker"), _("Queue"), _("Beat"), _("Last served"), _("Slots"), _("Consumers"), _("Runs")
    )
    for found in queues:
        for worker in found.workers:
            pids = ", ".join(f"pid {c.pid} ({c.leases})" for c in worker.consumers)
            runs = ", ".join(f"#{run.pk}" for run in worker.runs)
            name = worker.name + "".join(f" [{mark}]" for mark in _marks(worker))
            ages = (duration(worker.beat), duration(worker.served))
            _row(table, name, found.facts.name, *ages, worker.slots, pids or "-", runs or "-")
    return table if table.row_count else None


def _marks(worker: WorkerFacts) -> list[str]:
    marks = [] if worker.alive else [_("silent")]
    return [*marks, *([_("leaving")] if worker.leaving else [])]


def _groups(groups: Sequence[GroupState], more: bool) -> Table | None:
    if not groups:
        return None
    title = _("Groups, oldest first") + (" (" + _("there are more") + ")" if more else "")
    table = _table(title, _("State"), _("Group"), _("Reason"), _("Waiting"), _("Age"), _("Head"), _("Holder"))
    for group in groups:
        head = f"#{group.facts.head.id}" if group.facts.head else "-"
        cells = (group.state.name, group.name, group.state.reason, group.backlog(), duration(group.age), head)
        _row(table, *cells, group.holder or "-")
    return table


def _notes(status: Status) -> list[str]:
    notes = []
    for found in status.queues:
        told = found.facts.overview
        if told is not None and told.sweep_age_ms is not None:
            ages = {"queue": found.facts.name, "age": duration(seconds(told.sweep_age_ms))}
            notes.append(escape(_("Last full sweep of %(queue)s: %(age)s ago.") % ages))
    if status.unreported:
        told_of = {"count": status.unreported, "parked": status.parked}
        notes.append(_("Abandonments that are not reported: %(count)s, of them parked: %(parked)s.") % told_of)
    return notes


def _group(known: GroupState) -> Table:
    head, state = known.facts.head, known.state
    table = Table(show_header=False, title=escape(f"{known.queue} / {known.name}"), title_justify="left")
    lines: list[tuple[str, object]] = [
        (_("State"), state.name),
        (_("Reason"), state.reason),
        (_("What helps"), mend_text(state.mend)),
        (_("Since"), state.since),
        (_("Until"), state.until),
        (_("Head"), f"#{head.id} {head.job} ({head.status})" if head else ""),
        (_("Holder"), known.holder and f"{known.holder} ({_('beat')}: {duration(known.beat)})"),
        (_("Waiting"), known.backlog()),
        (_("Age"), duration(known.age) if head else ""),
    ]
    for name, value in lines:
        if value not in (None, ""):
            _row(table, name, value)
    return table
