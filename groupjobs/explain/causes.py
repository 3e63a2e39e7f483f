"""Why groups do not go on, as lines beside a report of recovery, which itself speaks only of what it would move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from groupjobs import conf, ledger
from groupjobs.explain.groups import GroupState, explained
from groupjobs.explain.listing import Found, listed, named
from groupjobs.recovery import Report

MOST: Final = 20  # groups that are explained where none is asked for
MOVING: Final = frozenset({"idle", "starting", "running", "behind"})
ORDERS: Final = ("oldest", "held", "unreported")


def add_causes(report: Report, queue: str, group: str | None) -> None:
    """Tell in a dry run why each group that recovery would leave as it is does not go on: the asked one, or the oldest.

    What recovery would move keeps its own line; of a kept run the reason is told in full.
    """
    queues = [queue] if queue else sorted({*conf.current().queues, *ledger.queues_with_live_runs()})
    found = named(queues, group) if group is not None else _waiting(queues)
    said = {line["run"]: line for line in report.details}
    for known in explained(found):
        if group is None and known.state.word in MOVING:
            continue
        _tell(report, known, said)


def _waiting(queues: Sequence[str]) -> list[Found]:
    """Live groups by age, held ones without runs, and those with an abandonment that nobody was told of."""
    return list(dict.fromkeys(place for order in ORDERS for place in listed(order, queues, "", MOST).found))


def _tell(report: Report, known: GroupState, said: Mapping[int, dict[str, Any]]) -> None:
    head = known.facts.head
    line = said.get(head.id) if head else None
    if line is None:
        run = head.id if head else known.facts.unreported.run if known.facts.unreported else known.run
        report.detail(run, known.group, known.queue, "waits", known.state.reason, known.holder)
    elif line["verdict"] == "kept":
        line["reason"] = known.state.reason
