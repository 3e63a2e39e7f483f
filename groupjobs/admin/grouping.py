"""What a person may do to a group or a queue: one POST each, guarded by what the page showed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from groupjobs import conf, control, ledger
from groupjobs.admin import recording
from groupjobs.admin.drift import mend
from groupjobs.admin.mending import HOOKS, Result, told
from groupjobs.admin.phrases import phrase
from groupjobs.ledger.conditions import live
from groupjobs.lifecycle import READY
from groupjobs.models import JobRun
from groupjobs.moves import REDIS_ERRORS
from groupjobs.recovery import Scope, recover

MOST: Final = 5_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked: `run` is the head that the page showed (0: none)."""

    queue: str
    group: str
    run: int
    reason: str
    by: str
    concurrency: str = ""
    count: str = ""
    seconds: str = ""

    @property
    def limits(self) -> str:
        """The limits that were asked for, as the log of changes shows them; '' without any."""
        rate = f"{self.count} / {self.seconds} s" if self.count or self.seconds else ""
        return ", ".join(filter(None, (self.concurrency and f"{self.concurrency} x", rate)))

    @property
    def said(self) -> str:
        """What the person wrote."""
        return self.reason or self.limits


@dataclass(frozen=True, slots=True)
class Deed:
    """A button of a group or queue; `asks` puts a question before it is done."""

    name: str
    permission: str
    label: Any
    act: Callable[[Asked], Result | str]
    asks: Any = ""


def _hold(asked: Asked) -> Result:
    return _of_group(control.hold(asked.queue, asked.group, asked.reason, asked.by), _("held already"))


def _resume(asked: Asked) -> Result:
    return _of_group(control.resume(asked.queue, asked.group, asked.by), _("not held"))


def _of_group(report: control.Report, otherwise: str) -> Result:
    return Result(dict.fromkeys(report.changed, ""), {run: otherwise for run, _reason in report.skipped})


def _skip(asked: Asked) -> Result:
    return told(control.cancel([asked.run] if asked.run else [], asked.by), _("cancelled"))


def _at_once(asked: Asked) -> Result:
    return told(control.reschedule([asked.run] if asked.run else [], None), _("due at once"))


def _retry(asked: Asked) -> Result:
    return told(control.retry([asked.run] if asked.run else [], asked.by), _("retried"))


def _cancel_rest(asked: Asked) -> Result:
    waiting = live(JobRun.objects.using(ledger.alias()).filter(queue=asked.queue, group=asked.group)).filter(
        status=READY
    )
    runs = list(waiting.order_by("pk").values_list("pk", flat=True)[:MOST]) if asked.group else []
    return told(control.cancel(runs, asked.by), _("cancelled"))


def _limit(asked: Asked) -> Result:
    """Empty fields are the queue's own limits; ValueError for what is no limit."""
    concurrency = int(asked.concurrency) if asked.concurrency else None
    rate = (int(asked.count), float(asked.seconds)) if asked.count or asked.seconds else None
    return _of_group(control.limit_group(asked.queue, asked.group, concurrency, rate, asked.by), _("so already"))


def _recover(asked: Asked) -> str:
    if asked.group or asked.run:
        only: dict[str, Any] = {"group": asked.group} if asked.group else {"runs": (asked.run,)}
        counts = recover(Scope(queue=asked.queue, **only), hooks=HOOKS).counts
    else:
        counts = mend(asked.queue, 0)[0]
    said = ", ".join(f"{number} {phrase(name)}" for name, number in counts.items() if number)
    return said or _("nothing to mend")


DEEDS: Final = {
    deed.name: deed
    for deed in (
        Deed("hold", "hold_group", gettext_lazy("Hold"), _hold),
        Deed("resume", "hold_group", gettext_lazy("Resume"), _resume),
        Deed(
            "limit",
            "limit_group",
            gettext_lazy("Set limits"),
            _limit,
            gettext_lazy("New reservations keep to these limits; for an empty field the limit of the queue holds."),
        ),
        Deed("recover", "recover_run", gettext_lazy("Recover"), _recover),
        Deed("at_once", "retry_run", gettext_lazy("Try at once"), _at_once),
        Deed("retry", "retry_run", gettext_lazy("Retry"), _retry),
        Deed(
            "skip", "cancel_run", gettext_lazy("Skip head"), _skip, gettext_lazy("The head of the group is cancelled.")
        ),
        Deed(
            "cancel_rest",
            "cancel_run",
            gettext_lazy("Cancel rest"),
            _cancel_rest,
            gettext_lazy("Every waiting run of the group is cancelled, up to 5,000 at once."),
        ),
    )
}


def allowed(request: HttpRequest) -> dict[str, bool]:
    """Which deeds this user may do, by name."""
    return {name: request.user.has_perm(f"groupjobs.{deed.permission}") for name, deed in DEEDS.items()}


def act_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Do one deed; a question comes first where the deed asks."""
    deed = DEEDS.get(request.POST.get("deed", ""))
    if request.method != "POST" or deed is None or not allowed(request)[deed.name]:
        raise PermissionDenied
    asked = _asked(request)
    if deed.asks and "confirmed" not in request.POST:
        return _question(model_admin, request, deed, asked)
    try:
        result = deed.act(asked)
    except REDIS_ERRORS as error:
        messages.error(request, _("Redis does not answer, and nothing was changed: %s") % error)
    except ValueError:
        messages.error(request, _("These are no limits: whole numbers from 1, and seconds above 0."))
    else:
        _tell(request, deed, asked, result)
    return HttpResponseRedirect(_back(model_admin, request))


def _asked(request: HttpRequest) -> Asked:
    queue, run = request.POST.get("queue", ""), request.POST.get("run", "")
    if queue not in conf.current().queues:
        raise PermissionDenied
    number = int(run) if run.isascii() and run.isdigit() and len(run) < 19 else 0
    return Asked(
        queue,
        request.POST.get("group", ""),
        number,
        request.POST.get("reason", "").strip(),
        request.user.get_username(),
        *(request.POST.get(name, "").strip()[:20] for name in ("concurrency", "count", "seconds")),
    )


def _question(model_admin: Any, request: HttpRequest, deed: Deed, asked: Asked) -> HttpResponse:
    request.current_app = model_admin.admin_site.name
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "title": f"{deed.label}: {asked.group or asked.run}",
        "deed": deed,
        "asked": asked,
        "back": _back(model_admin, request),
    }
    return TemplateResponse(request, "groupjobs/admin/question.html", context)


def _tell(request: HttpRequest, deed: Deed, asked: Asked, result: Result | str) -> None:
    changed = bool(result.changed) if isinstance(result, Result) else True
    name = f"{asked.queue}/{asked.group or (f'#{asked.run}' if asked.run else '')}".rstrip("/")
    if changed:
        recording.record_queue(request, name, f"{deed.label}: {asked.said or result}")
    level = messages.SUCCESS if changed else messages.WARNING
    messages.add_message(request, level, f"{deed.label} {name}: {result}")


def _back(model_admin: Any, request: HttpRequest) -> str:
    """Where the button was, if that is a page of this site."""
    back = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure()):
        return back
    return reverse(f"{model_admin.admin_site.name}:groupjobs_jobgroup_changelist")
