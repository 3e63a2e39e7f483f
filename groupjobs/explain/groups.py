"""Groups with their states, for whoever shows them: pages, commands, metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext as _

from groupjobs.explain.ages import seconds_between
from groupjobs.explain.counting import Counted, counted, live_of
from groupjobs.explain.facts import GroupFacts, QueueFacts, State
from groupjobs.explain.gathering import facts_of
from groupjobs.explain.listing import Found
from groupjobs.explain.words import explain
from groupjobs.models import JobRun

COUNTED: Final = 1_000
PAYLOAD: Final = ("args", "kwargs", "result", "error", "labels")


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group with its state; `run` is the one that is a group of its own (else 0)."""

    queue: str
    group: str
    run: int
    facts: GroupFacts
    state: State

    @property
    def name(self) -> str:
        """Its name, or that of the run that is a group of its own."""
        return self.group or f"#{self.run}"

    @property
    def age(self) -> float | None:
        """Seconds since its head was enqueued."""
        head = self.facts.head
        return seconds_between(head.enqueued_at, self.facts.now) if head else None

    @property
    def holder(self) -> str:
        """The worker that has its head, or ''."""
        return self.facts.head.worker if self.facts.head else ""

    @property
    def beat(self) -> float | None:
        """Seconds since its holder's last beat."""
        return self.facts.queue.beats.get(self.holder)

    def backlog(self) -> Counted:
        """How many live runs it has, counted up to a thousand."""
        if self.group:
            return counted(live_of(self.queue, self.group), COUNTED)
        return Counted(1 if self.facts.head else 0)


def explained(found: Iterable[Found], told: Mapping[str, QueueFacts] | None = None) -> list[GroupState]:
    """Facts and state of each group, in the order given; `told` are the facts of queues that are known already."""
    order, told = list(found), told or {}
    answers: dict[Found, GroupFacts] = {}
    for queue in {queue for queue, _group, _run in order}:
        places = [(group, run) for name, group, run in order if name == queue]
        for (group, run), facts in zip(places, facts_of(queue, places, told.get(queue)), strict=True):
            answers[queue, group, run] = facts
    return [GroupState(*place, answers[place], explain(answers[place])) for place in order]


def line_of(queue: str, group: str, run: int, most: int = 20) -> Sequence[JobRun]:
    """The first live runs of a group, in order."""
    rows = live_of(queue, group)
    rows = rows.filter(pk=run) if not group else rows
    return list(rows.defer(*PAYLOAD).order_by("order", "pk")[:most])


def mend_text(mend: str) -> str:
    """What a person may do about a state."""
    return {
        "recover": _("Recover mends it now; the next sweep does it by itself."),
        "resume": _("Resume the group when its cause is mended."),
        "resume_queue": _("Resume the queue on the page of queues."),
        "start_worker": _("Start a worker that serves the queue and knows the job."),
        "at_once": _("It goes on by itself; Try at once does not wait."),
        "redeliver": _("Mend its hook, then recover the run."),
    }.get(mend, "")
