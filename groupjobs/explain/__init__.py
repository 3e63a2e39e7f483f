"""Why a group does not go on, in words: facts from rows and Redis, and a pure function over them."""

from groupjobs.explain.ages import duration, seconds_between
from groupjobs.explain.facts import GroupFacts, HoldFacts, QueueFacts, ReportFacts, RunFacts, State
from groupjobs.explain.gathering import facts_of, facts_of_run
from groupjobs.explain.groups import GroupState, explained, line_of, mend_text
from groupjobs.explain.listing import Listed, listed, starting_with
from groupjobs.explain.names import NAMES
from groupjobs.explain.queues import REDIS_ERRORS, queue_facts, queues_facts
from groupjobs.explain.reasons import reason_text
from groupjobs.explain.summaries import Summary, WorkerFacts, summaries
from groupjobs.explain.words import explain, explain_run

__all__ = [
    "NAMES",
    "REDIS_ERRORS",
    "GroupFacts",
    "GroupState",
    "HoldFacts",
    "Listed",
    "QueueFacts",
    "ReportFacts",
    "RunFacts",
    "State",
    "Summary",
    "WorkerFacts",
    "duration",
    "explain",
    "explain_run",
    "explained",
    "facts_of",
    "facts_of_run",
    "line_of",
    "listed",
    "mend_text",
    "queue_facts",
    "queues_facts",
    "reason_text",
    "seconds_between",
    "starting_with",
    "summaries",
]
