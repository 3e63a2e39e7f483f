"""Drift between rows and Redis: what recovery would do in each queue, and the button that lets it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from groupjobs import conf, ledger
from groupjobs.admin import recording
from groupjobs.admin.mending import HOOKS, reason_of
from groupjobs.admin.phrases import phrase
from groupjobs.moves import REDIS_ERRORS
from groupjobs.recovery import Report, Scope, recover
from groupjobs.recovery.judge import Judge
from groupjobs.store import store_for

PAGE: Final = 500
SECONDS: Final = 2.0  # that one look at all queues may take
EXAMPLES: Final = 5
COUNTS: Final = ("requeued", "abandoned", "republished", "released")


@dataclass(slots=True)
class Look:
    """What recovery would do in a queue. `whole` says that every live row was examined."""

    queue: str
    state: str = ""
    examined: int = 0
    whole: bool = True
    counts: list[tuple[str, int]] = field(default_factory=list)
    examples: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""

    @property
    def drifted(self) -> bool:
        """Whether there is anything to mend."""
        return bool(self.counts) or self.state == "rebuild"


def look(queue: str, seconds: float) -> Look:
    """Judge the live rows of a queue, oldest first, for so many seconds; nothing is changed."""
    found = Look(queue)
    report = Report(dry_run=True)
    try:
        found.state = store_for(queue).snapshot([]).state
        found.whole = _judge(queue, report, seconds)
    except REDIS_ERRORS as error:
        found.problem = str(error)
    found.examined = report.counts["examined"]
    found.counts = [(phrase(word), report.counts[word]) for word in COUNTS if report.counts[word]]
    found.examples = _examples(report)
    return found


def _judge(queue: str, report: Report, seconds: float) -> bool:
    until, after = time.monotonic() + seconds, 0
    judge = Judge(store_for(queue), queue, Scope(queue=queue), report)
    while page := ledger.live_page(queue, after, PAGE):
        if not judge.page(page):
            return True
        after = page[-1].pk
        if time.monotonic() > until:
            return len(page) < PAGE
    return True


def _examples(report: Report) -> list[dict[str, Any]]:
    shown: Counter[str] = Counter()
    lines = []
    for line in report.details:
        shown[line["verdict"]] += 1
        if line["verdict"] != "kept" and shown[line["verdict"]] <= EXAMPLES:
            lines.append({**line, "verdict": phrase(line["verdict"]), "reason": reason_of(line["reason"])})
    return lines


def drift_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """The page; POST mends one queue."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    request.current_app = model_admin.admin_site.name
    if request.method == "POST":
        return _mend(model_admin, request)
    queues = sorted(conf.current().queues)
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "title": _("Drift"),
        "here": "drift",
        "looks": [look(queue, SECONDS / len(queues)) for queue in queues],
        "may_mend": model_admin.has_recover_permission(request),
    }
    return TemplateResponse(request, "groupjobs/admin/drift.html", context)


def _mend(model_admin: Any, request: HttpRequest) -> HttpResponse:
    queue = request.POST.get("queue", "")
    if not model_admin.has_recover_permission(request) or queue not in conf.current().queues:
        raise PermissionDenied
    try:
        report = recover(Scope(queue=queue), hooks=HOOKS)
    except REDIS_ERRORS as error:
        messages.error(request, _("Redis does not answer, and nothing was changed: %s") % error)
    else:
        _tell(request, queue, report)
    return HttpResponseRedirect(reverse(f"{model_admin.admin_site.name}:groupjobs_jobrun_drift"))


def _tell(request: HttpRequest, queue: str, report: Report) -> None:
    said = ", ".join(f"{number} {phrase(name)}" for name, number in report.counts.items() if number)
    recording.record_queue(request, queue, f"Recover now: {said}")
    level = messages.WARNING if report.counts["refused"] else messages.SUCCESS
    messages.add_message(
        request, level, _("Queue %(queue)s: %(said)s") % {"queue": queue, "said": said or _("nothing to mend")}
    )
