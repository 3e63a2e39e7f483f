"""Drift between rows and Redis: what recovery would do in each queue, and the button that lets it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from groupjobs import conf
from groupjobs.admin import recording
from groupjobs.admin.mending import HOOKS, reason_of
from groupjobs.admin.phrases import phrase
from groupjobs.explain.drift import look
from groupjobs.moves import REDIS_ERRORS
from groupjobs.recovery import Scope, recover

SECONDS: Final = 2.0  # that one look at all queues may take
MENDING: Final = 8.0  # seconds that one request spends on mending
EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Shown:
    """What recovery would do in a queue, as the page shows it."""

    queue: str
    state: str
    examined: int
    whole: bool
    drifted: bool
    counts: list[tuple[str, int]]
    examples: list[dict[str, Any]]
    problem: str


def shown(queue: str, seconds: float) -> Shown:
    """Judge the live rows of a queue for so many seconds, in the reader's language."""
    found = look(queue, seconds)
    counts = [(phrase(word), number) for word, number in found.counts.items()]
    examples = _examples(found.details)
    return Shown(queue, found.state, found.examined, found.whole, found.drifted, counts, examples, found.problem)


def _examples(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: Counter[str] = Counter()
    lines = []
    for line in details:
        seen[line["verdict"]] += 1
        if seen[line["verdict"]] <= EXAMPLES:
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
        "looks": [shown(queue, SECONDS / len(queues)) for queue in queues],
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
    """Recover a queue from `after` on, in bounded time. Answers counts, and where to go on (0: done)."""
    report = recover(Scope(queue=queue, after=after, seconds=MENDING), hooks=HOOKS)
    return Counter(report.counts), report.go_on


def _tell(request: HttpRequest, queue: str, counts: Counter[str]) -> None:
    said = ", ".join(f"{number} {phrase(name)}" for name, number in counts.items() if number)
    recording.record_queue(request, queue, f"Mend now: {said}")
    level = messages.WARNING if counts["refused"] else messages.SUCCESS
    text = _("Queue %(queue)s: %(said)s") % {"queue": queue, "said": said or _("nothing to mend")}
    messages.add_message(request, level, text)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
