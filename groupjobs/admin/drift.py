"""Drift between rows and Redis: what recovery would do in each queue, and the button that lets it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

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
WHOLE: Final = 5_000  # live runs of a queue that one request recovers as a whole
MENDING: Final = 8.0  # seconds that a request spends on a larger one
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
        "go_on": (request.GET.get("queue", ""), _number(request.GET.get("after", ""))),
        "may_mend": model_admin.has_recover_permission(request),
    }
    return TemplateResponse(request, "groupjobs/admin/drift.html", context)


def _mend(model_admin: Any, request: HttpRequest) -> HttpResponse:
    queue, after = request.POST.get("queue", ""), _number(request.POST.get("after", ""))
    if not model_admin.has_recover_permission(request) or queue not in conf.current().queues:
        raise PermissionDenied
    address = reverse(f"{model_admin.admin_site.name}:groupjobs_jobrun_drift")
    try:
        counts, after = mend(queue, after)
    except REDIS_ERRORS as error:
        messages.error(request, _("Redis does not answer, and nothing was changed: %s") % error)
    else:
        _tell(request, queue, counts)
        if after:
            messages.warning(request, _("There are more live runs: go on from #%s.") % after)
            address += "?" + urlencode({"queue": queue, "after": after})
    return HttpResponseRedirect(address)


def mend(queue: str, after: int) -> tuple[Counter[str], int]:
    """Recover a queue; a large one in bounded time from `after` on. Answers counts, and where to go on (0: done)."""
    first = ledger.live_page(queue, after, WHOLE + 1)
    if not after and len(first) <= WHOLE:
        return Counter(recover(Scope(queue=queue), hooks=HOOKS).counts), 0
    counts: Counter[str] = Counter()
    until = time.monotonic() + MENDING
    while page := ledger.live_page(queue, after, PAGE):
        counts.update(recover(Scope(queue=queue, runs=tuple(run.pk for run in page)), hooks=0.0).counts)
        after = page[-1].pk
        if counts["refused"] or (len(page) == PAGE and time.monotonic() > until):
            return counts, after if not counts["refused"] else 0
    return counts, 0


def _tell(request: HttpRequest, queue: str, counts: Counter[str]) -> None:
    said = ", ".join(f"{number} {phrase(name)}" for name, number in counts.items() if number)
    recording.record_queue(request, queue, f"Mend now: {said}")
    level = messages.WARNING if counts["refused"] else messages.SUCCESS
    text = _("Queue %(queue)s: %(said)s") % {"queue": queue, "said": said or _("nothing to mend")}
    messages.add_message(request, level, text)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
