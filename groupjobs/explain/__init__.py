"""Why a group does not go on, in words: facts from rows and Redis, and a pure function over them."""

from groupjobs.explain.ages import duration, seconds_between
from groupjobs.explain.facts import GroupFacts, HoldFacts, QueueFacts, ReportFacts, RunFacts, State
from groupjobs.explain.gathering import facts_of, facts_of_run, queue_facts
from groupjobs.explain.listing import Listed, listed, starting_with
from groupjobs.explain.names import NAMES
from groupjobs.explain.reasons import reason_text
from groupjobs.explain.words import explain, explain_run

__all__ = [
    "NAMES",
    "GroupFacts",
    "HoldFacts",
    "Listed",
    "QueueFacts",
    "ReportFacts",
    "RunFacts",
    "State",
    "duration",
    "explain",
    "explain_run",
    "facts_of",
    "facts_of_run",
    "listed",
    "queue_facts",
    "reason_text",
    "seconds_between",
    "starting_with",
]
