"""The page of groups: state and reason of each, and what helps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from groupjobs import conf, ledger
from groupjobs.explain import (
    NAMES,
    GroupFacts,
    QueueFacts,
    State,
    duration,
    explain,
    facts_of,
    listed,
    queue_facts,
    seconds_between,
    starting_with,
)
from groupjobs.ledger.conditions import live
from groupjobs.models import JobRun

SHOWN: Final = 25
EXPLAINED: Final = 200  # groups among which a state is looked for
COUNTED: Final = 1_000
ORDERS: Final = (
    ("oldest", gettext_lazy("Oldest first")),
    ("name", gettext_lazy("By name")),
    ("held", gettext_lazy("Held")),
    ("unreported", gettext_lazy("Unreported abandonments")),
)
STATES: Final = (
    "running", "waiting", "backing_off", "scheduled", "rate_limited", "held", "paused", "ghost", "silent", "quiet",
    "no_worker", "unserved", "unpublished", "unknown", "lost", "given_back", "behind", "stuck",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A group as the page shows it; durations are text."""

    queue: str
    group: str
    run: int
    state: State
    facts: GroupFacts
    backlog: str
    age: str
    beat: str
    address: str

    @property
    def name(self) -> str:
        """Its name, or that of the run that is a group of its own."""
        return self.group or f"#{self.run}"


def groups_context(request: HttpRequest) -> dict[str, Any]:
    """What the page shows for the filters in its address."""
    asked = {name: request.GET.get(name, "").replace("\0", "") for name in ("order", "queue", "state", "q", "after")}
    queues = [asked["queue"]] if asked["queue"] else sorted(conf.current().queues)
    told = {queue: queue_facts(queue) for queue in queues}
    if asked["q"]:
        found, more = starting_with(queues, asked["q"], SHOWN), ""
    else:
        page = listed(asked["order"], queues, asked["after"], EXPLAINED if asked["state"] else SHOWN)
        found, more = page.found, page.more
    known = explained(found, told)
    if asked["state"]:
        known = [(facts, state, place) for facts, state, place in known if state.word == asked["state"]]
    return {
        "rows": [row_of(facts, state, place) for facts, state, place in known[:SHOWN]],
        "told": list(told.values()),
        "asked": asked,
        "queues": sorted(conf.current().queues),
        "orders": ORDERS,
        "states": [(word, NAMES[word]) for word in STATES],
        "more": _address(asked, more) if more else "",
        "first": bool(asked["after"]),
    }


def _address(asked: dict[str, str], after: str) -> str:
    return "?" + urlencode({name: value for name, value in {**asked, "after": after}.items() if value})


def explained(
    found: Iterable[tuple[str, str, int]], told: dict[str, QueueFacts]
) -> list[tuple[GroupFacts, State, tuple[str, str, int]]]:
    """Facts and state of each group, in the order given."""
    order = list(found)
    answers: dict[tuple[str, str, int], tuple[GroupFacts, State]] = {}
    for queue in {queue for queue, _group, _run in order}:
        places = [(group, run) for name, group, run in order if name == queue]
        for (group, run), facts in zip(places, facts_of(queue, places, told.get(queue)), strict=True):
            answers[queue, group, run] = (facts, explain(facts))
    return [(*answers[place], place) for place in order]


def row_of(facts: GroupFacts, state: State, place: tuple[str, str, int]) -> Row:
    """Everything that a line of the page shows."""
    queue, group, run = place
    head = facts.head
    beat = facts.queue.beats.get(head.worker) if head and head.worker else None
    return Row(
        queue=queue,
        group=group,
        run=run,
        state=state,
        facts=facts,
        backlog=backlog(queue, group) if group else "1" if head else "0",
        age=duration(seconds_between(head.enqueued_at, facts.now)) if head else "-",
        beat=duration(beat),
        address="?" + urlencode({"queue": queue, "group": group, **({"run": run} if not group else {})}),
    )


def backlog(queue: str, group: str) -> str:
    """How many live runs a group has, counted up to a thousand."""
    return counted(live(JobRun.objects.using(ledger.alias()).filter(queue=queue, group=group)))


def counted(rows: Any, most: int = COUNTED) -> str:
    """A count that reads at most so many rows."""
    number = len(rows.order_by().values_list("pk")[: most + 1])
    return f"{most}+" if number > most else str(number)


def line_of(queue: str, group: str, run: int, most: int = 20) -> list[JobRun]:
    """The first live runs of a group, in order."""
    rows = live(JobRun.objects.using(ledger.alias()).filter(queue=queue, group=group))
    rows = rows.filter(pk=run) if not group else rows
    return list(rows.defer("args", "kwargs", "result", "error", "labels").order_by("order", "pk")[:most])


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
