"""`explain`: from the facts about a group to its state and the reason. Pure: the first rule that fits decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.utils.translation import gettext as _

from groupjobs.explain.ages import duration, seconds_between
from groupjobs.explain.facts import QUIET, GroupFacts, HoldFacts, QueueFacts, RunFacts, State
from groupjobs.explain.reasons import reason_text
from groupjobs.lifecycle import READY

Rule = Callable[[GroupFacts], State | None]


def explain(facts: GroupFacts) -> State:
    """The state of a group and why it is so, in the reader's language."""
    for rule in RULES:
        state = rule(facts)
        if state is not None:
            return state
    return State("stuck", _("in line, but neither ready nor waiting for anything"), mend="recover")


def explain_run(facts: GroupFacts, run: int) -> State:
    """The state of one live run of a group: that of the group, or waiting behind its head."""
    state = explain(facts)
    if facts.head is None or facts.head.id == run:
        return state
    reason = _("waits behind #%(head)s of its group: %(reason)s") % {"head": facts.head.id, "reason": state.reason}
    return replace(state, word="behind", reason=reason)


def _unreachable(facts: GroupFacts) -> State | None:
    if facts.queue.state == "down":
        return State("unreachable", _("Redis does not answer: %s") % facts.queue.problem)
    if facts.queue.state == "format":
        return State("newer", _("a newer release of groupjobs made the keys of the queue"))
    if facts.queue.state == "unnamed":
        return State("unnamed", _("the settings name no queue %s, so nobody serves it") % facts.queue.name)
    return None


def _rebuilding(facts: GroupFacts) -> State | None:
    if facts.queue.state != "rebuild" or facts.queue.absent:
        return None
    told = {"age": duration(facts.queue.rebuilding), "ttl": duration(facts.queue.ttl)}
    reason = _("Redis lost its memory %(age)s ago; the queue is rebuilt from rows, which takes up to %(ttl)s") % told
    return State("rebuilding", reason, mend="recover")


def _ended(facts: GroupFacts) -> State | None:
    if facts.head is not None or facts.hold is not None:
        return None
    report = facts.unreported
    if report is None:
        return State("idle", _("nothing waits"))
    told = {"run": report.run, "why": reason_text(report.reason), "count": report.attempts}
    if report.parked:
        reason = _("#%(run)s was abandoned (%(why)s); its report failed %(count)s times and waits for a person")
        return State("unreported", reason % told, mend="redeliver")
    reason = _("#%(run)s was abandoned (%(why)s); its report was tried %(count)s times")
    return State("unreported", reason % told, until=report.due)


def _held(facts: GroupFacts) -> State | None:
    if facts.hold is not None:
        return _stopped(facts, facts.hold, "held", _("held"), "resume")
    if facts.queue.pause is not None:
        return _stopped(facts, facts.queue.pause, "paused", _("the queue is paused"), "resume_queue")
    return None


def _stopped(facts: GroupFacts, hold: HoldFacts, word: str, text: str, mend: str) -> State:
    if hold.by:
        text = _("%(held)s by %(by)s") % {"held": text, "by": hold.by}
    if hold.since is not None:
        text = _("%(held)s for %(age)s") % {"held": text, "age": duration(seconds_between(hold.since, facts.now))}
    if hold.reason:
        text = f"{text}: {hold.reason}"
    if facts.head is not None and facts.head.place == "leased" and not facts.head.ghost:
        text = _("%(held)s; #%(run)s still runs to its end") % {"held": text, "run": facts.head.id}
    return State(word, text, since=hold.since, mend=mend)


def _absent(facts: GroupFacts) -> State | None:
    """Redis lost its memory, or never had any, and nobody is there to rebuild the queue."""
    return _unserved(facts.queue) if facts.queue.state == "rebuild" and facts.head is not None else None


def _leased(facts: GroupFacts) -> State | None:
    head = facts.head
    if head is None or head.place != "leased":
        return None
    told = {"run": head.id, "worker": head.worker}
    if head.ghost:
        return _ghost(facts, told)
    age = facts.queue.beats.get(head.worker)
    if head.silent or (age is not None and age > facts.queue.ttl / 2):
        return _silent(facts, told, age)
    if head.status == READY:
        return State("starting", _("#%(run)s was reserved by %(worker)s") % told)
    return _running(facts, head)


def _ghost(facts: GroupFacts, told: dict[str, object]) -> State:
    reason = _("#%(run)s was with worker %(worker)s, which is dead; it is being healed") % told
    if not facts.queue.workers:
        reason = _("#%(run)s was with worker %(worker)s, which is dead, and no worker is left to heal it") % told
    return State("ghost", reason, mend="recover")


def _silent(facts: GroupFacts, told: dict[str, object], age: float | None) -> State:
    told |= {"ttl": duration(facts.queue.ttl), "age": duration(age)}
    reason = _("#%(run)s is with worker %(worker)s, which was last heard of %(age)s ago; it is given up after %(ttl)s")
    until = None if age is None else facts.now + timedelta(seconds=max(0.0, facts.queue.ttl - age))
    return State("silent", reason % told, until=until, mend="recover" if facts.queue.workers < 2 else "")


def _running(facts: GroupFacts, head: RunFacts) -> State:
    told = {"run": head.id, "worker": head.worker, "age": duration(seconds_between(head.begun_at, facts.now))}
    reason = _("#%(run)s runs for %(age)s on %(worker)s") % told
    if head.cancel_requested:
        reason = _("%s; it was asked to cancel") % reason
    if head.quiet is not None and head.quiet > QUIET:
        told |= {"reason": reason, "quiet": duration(head.quiet)}
        return State("quiet", _("%(reason)s; its progress is unchanged for %(quiet)s") % told, since=head.begun_at)
    return State("running", reason, since=head.begun_at)


def _unlinked(facts: GroupFacts) -> State | None:
    """The row and Redis disagree: recovery mends it."""
    head = facts.head
    if head is None or (head.status == READY and head.place):
        return None
    if head.status != READY:
        return State("lost", _("#%s says RUNNING, but nobody holds it") % head.id, mend="recover")
    if head.unpublished:
        reason = _("#%s is not published: Redis did not answer when it was enqueued; the next quick sweep does it")
        return State("unpublished", reason % head.id, mend="recover")
    return State("unknown", _("Redis does not know #%s; the next sweep publishes it") % head.id, mend="recover")


def _timed(facts: GroupFacts) -> State | None:
    """Only time keeps it: its own, or that of the next token."""
    head = facts.head
    if head is None or (facts.later is None and head.place != "scheduled"):
        return None
    own = seconds_between(facts.now, head.run_after)
    if own is not None and own > 0:
        return _own_time(head, own)
    left = facts.later or 0.0
    if left <= 0:
        return None
    until = facts.now + timedelta(seconds=left)
    if facts.limited:
        return State("rate_limited", _("rate limited: its next token comes in %s") % duration(left), until=until)
    return _given_back(facts, head, until)


def _own_time(head: RunFacts, left: float) -> State:
    if not head.failures:
        reason = _("#%(run)s is due in %(left)s") % {"run": head.id, "left": duration(left)}
        return State("scheduled", reason, until=head.run_after, mend="at_once")
    told = {"run": head.id, "left": duration(left), "next": head.failures + 1, "most": head.max_attempts}
    reason = _("#%(run)s backs off for another %(left)s before attempt %(next)s of %(most)s") % told
    if head.failure:
        reason = _("%(reason)s, after %(failure)s") % {"reason": reason, "failure": head.failure}
    return State("backing_off", reason, until=head.run_after, mend="at_once")


def _given_back(facts: GroupFacts, head: RunFacts, until: datetime) -> State:
    grace = duration(facts.queue.grace - (seconds_between(head.enqueued_at, facts.now) or 0.0))
    told = {"run": head.id, "job": head.job, "grace": grace}
    reason = _("a worker gave #%(run)s back: it does not know the job %(job)s, or cannot bind its arguments")
    if not head.known:
        reason = _("no worker knows the job %(job)s of #%(run)s; it is tried again, and abandoned in %(grace)s")
    return State("given_back", reason % told, until=until, mend="start_worker")


def _served(facts: GroupFacts) -> State | None:
    """Its turn has come: who takes it."""
    head = facts.head
    overdue = facts.later is not None or (head is not None and head.place == "scheduled")
    if not facts.ready and not overdue:
        return None
    queue = facts.queue
    if not queue.workers:
        return _unserved(queue)
    told = {"ready": queue.ready, "consumers": queue.consumers}
    return State(
        "waiting", _("waits for a free worker: %(ready)s groups are ready, %(consumers)s consumers serve") % told
    )


def _unserved(queue: QueueFacts) -> State:
    if not queue.elsewhere:
        return State("no_worker", _("no worker runs"), mend="start_worker")
    told = {"count": queue.elsewhere, "queue": queue.name, "celery": queue.celery_queue}
    reason = _("%(count)s workers run, but none of them serves the queue %(queue)s (Celery queue %(celery)s)")
    return State("unserved", reason % told, mend="start_worker")


def _behind(facts: GroupFacts) -> State | None:
    if facts.strays:
        return State("stuck", _("Redis holds a place for a run that nobody has"), mend="recover")
    if facts.held:
        return State("behind", _("%s runs of the group are with workers, which is its limit") % facts.held)
    return None


RULES: Final[tuple[Rule, ...]] = (
    _unreachable, _rebuilding, _ended, _held, _absent, _leased, _unlinked, _timed, _served, _behind,
)  # fmt: skip
