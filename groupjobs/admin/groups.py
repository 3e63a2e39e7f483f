"""The page of groups: state and reason of each, and what helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from groupjobs import conf
from groupjobs.explain import (
    NAMES,
    GroupFacts,
    GroupState,
    State,
    duration,
    explained,
    listed,
    queues_facts,
    starting_with,
)

SHOWN: Final = 25
EXPLAINED: Final = 200  # groups among which a state is looked for
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
    name: str
    run: int
    state: State
    facts: GroupFacts
    backlog: str
    age: str
    beat: str
    address: str


def groups_context(request: HttpRequest) -> dict[str, Any]:
    """What the page shows for the filters in its address."""
    asked = {name: request.GET.get(name, "").replace("\0", "") for name in ("order", "queue", "state", "q", "after")}
    queues = [asked["queue"]] if asked["queue"] else sorted(conf.current().queues)
    told = queues_facts(queues)
    if asked["q"]:
        found, more = starting_with(queues, asked["q"], SHOWN), ""
    else:
        page = listed(asked["order"], queues, asked["after"], EXPLAINED if asked["state"] else SHOWN)
        found, more = page.found, page.more
    known = explained(found, told)
    if asked["state"]:
        known = [group for group in known if group.state.word == asked["state"]]
    return {
        "rows": [row_of(group) for group in known[:SHOWN]],
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


def row_of(known: GroupState) -> Row:
    """Everything that a line of the page shows."""
    place = {"queue": known.queue, "group": known.group, **({"run": known.run} if not known.group else {})}
    return Row(
        queue=known.queue,
        group=known.group,
        name=known.name,
        run=known.run,
        state=known.state,
        facts=known.facts,
        backlog=str(known.backlog()),
        age=duration(known.age),
        beat=duration(known.beat),
        address="?" + urlencode(place),
    )
