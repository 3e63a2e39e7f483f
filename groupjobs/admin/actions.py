"""Actions on runs: asked for, confirmed on a page that says what will change, done, told and recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from groupjobs import control
from groupjobs.admin import recording
from groupjobs.admin.mending import Result, foreseen, recover_runs, rows_of, told
from groupjobs.admin.phrases import phrase
from groupjobs.lifecycle import ABANDONED, LIVE, RUNNING, TERMINAL
from groupjobs.moves import REDIS_ERRORS

MOST: Final = 5_000  # runs of one action
FORESEEN: Final = 500  # runs that a confirm page looks at
LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class Action:
    """A button: `needs` is the permission's first word; `foresee` says what `carry_out` would do now."""

    name: str
    label: Any
    question: Any
    consequence: Any
    carry_out: Callable[[Sequence[int], str], Result]  # the runs, and who asks
    foresee: Callable[[Sequence[int]], Result]
    statuses: frozenset[str]  # of runs that it can change
    needs: str
    danger: bool = False


ACTIONS: Final = (
    Action(
        "recover",
        gettext_lazy("Recover"),
        gettext_lazy("Recover these runs?"),
        gettext_lazy(
            "Ghosts get another try in their place or, after too many losses, are abandoned; runs that Redis does "
            "not know are published; abandonments are reported again. What a living worker holds is kept."
        ),
        lambda runs, by: recover_runs(runs),
        lambda runs: recover_runs(runs, dry_run=True),
        LIVE | {ABANDONED},
        "recover",
    ),
    Action(
        "retry",
        gettext_lazy("Retry"),
        gettext_lazy("Retry these runs?"),
        gettext_lazy("Ended runs get a new life in their row: budgets start anew, and the history stays."),
        lambda runs, by: told(control.retry(runs, by), _("retried")),
        lambda runs: foreseen(runs, TERMINAL, _("retried")),
        TERMINAL,
        "retry",
    ),
    Action(
        "retry_as_new",
        gettext_lazy("Retry as new runs"),
        gettext_lazy("Retry these runs as new ones?"),
        gettext_lazy("For each ended run a new one is put at the end of its line, once; the old one stays as it is."),
        lambda runs, by: told(control.retry(runs, by, as_new=True), _("made")),
        lambda runs: foreseen(runs, TERMINAL, _("retried")),
        TERMINAL,
        "retry",
    ),
    Action(
        "cancel",
        gettext_lazy("Cancel"),
        gettext_lazy("Cancel these runs?"),
        gettext_lazy("Waiting runs end as CANCELLED at once; running ones are asked to stop."),
        lambda runs, by: told(control.cancel(runs, by), _("cancelled")),
        lambda runs: foreseen(runs, LIVE, _("cancelled")),
        LIVE,
        "cancel",
        danger=True,
    ),
    Action(
        "kill",
        gettext_lazy("Cancel by force"),
        gettext_lazy("Cancel these runs by force?"),
        gettext_lazy("The process of a running one is killed within a few seconds (prefork pool only)."),
        lambda runs, by: told(control.cancel(runs, by, force=True), _("cancelled")),
        lambda runs: foreseen(runs, LIVE, _("cancelled")),
        frozenset({RUNNING}),
        "cancel",
        danger=True,
    ),
    Action(
        "abandon",
        gettext_lazy("Abandon"),
        gettext_lazy("Abandon these runs?"),
        gettext_lazy(
            "Ghosts end as ABANDONED instead of another try, and are reported. What a living worker holds is kept."
        ),
        lambda runs, by: recover_runs(runs, abandon=True),
        lambda runs: recover_runs(runs, abandon=True, dry_run=True),
        LIVE,
        "abandon",
        danger=True,
    ),
)


def admin_action(action: Action) -> Callable[..., HttpResponse]:
    """The action as Django's admin calls it."""

    def act(model_admin: Any, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse:
        runs = list(rows.order_by("pk").values_list("pk", flat=True)[: MOST + 1])
        try:
            if "confirmed" in request.POST:
                return _do(model_admin, request, action, runs[:MOST], more=len(runs) > MOST)
            return _ask(model_admin, request, action, runs[:MOST], more=len(runs) > MOST)
        except REDIS_ERRORS as error:
            messages.error(request, _("Redis does not answer, and nothing was changed: %s") % error)
            return HttpResponseRedirect(_after(model_admin, request))

    act.__name__ = action.name
    decorated: Callable[..., HttpResponse] = admin.action(
        act,
        permissions=[action.needs],
        description=action.label,
        **_everywhere(),
    )
    return decorated


def _everywhere() -> dict[str, Any]:
    """From Django 6.1 on an action says where it is offered."""
    location = getattr(admin, "ActionLocation", None)
    return {} if location is None else {"location": [location.CHANGE_LIST, location.CHANGE_FORM]}


def _ask(model_admin: Any, request: HttpRequest, action: Action, runs: Sequence[int], *, more: bool) -> HttpResponse:
    request.current_app = model_admin.admin_site.name
    result = action.foresee(runs[:FORESEEN])
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "title": action.question,
        "action": action,
        "changes": [(phrase(word), number) for word, number in Counter(result.changed.values()).most_common()],
        "skips": Counter(result.skipped.values()).most_common(),
        "total": len(runs),
        "more": more,
        "foreseen": min(len(runs), FORESEEN),
        "rows": list(rows_of(runs[:LISTED])),
        "checkbox": ACTION_CHECKBOX_NAME,
        "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "across": request.POST.get("select_across") == "1",
        "from_run": request.POST.get("from_run", ""),
        "target": _list_address(model_admin, request),
        "back": _after(model_admin, request),
    }
    return TemplateResponse(request, "groupjobs/admin/confirm.html", context)


def _do(model_admin: Any, request: HttpRequest, action: Action, runs: Sequence[int], *, more: bool) -> HttpResponse:
    result = action.carry_out(runs, request.user.get_username())
    recording.record_runs(request, sorted(result.changed), result.changed, str(action.label))
    level = messages.SUCCESS if result.changed else messages.WARNING
    messages.add_message(request, level, f"{action.label}: {result}")
    if more:
        messages.warning(request, _("Only the first %s runs were looked at; do it again for the rest.") % MOST)
    return HttpResponseRedirect(_after(model_admin, request))


def _list_address(model_admin: Any, request: HttpRequest) -> str:
    """The list with its filters; the list itself when the action was asked for on the page of a run."""
    address = reverse(f"{model_admin.admin_site.name}:groupjobs_jobrun_changelist")
    return request.get_full_path() if request.path == address else address


def _after(model_admin: Any, request: HttpRequest) -> str:
    run = request.POST.get("from_run", "")
    if run.isascii() and run.isdigit():
        return reverse(f"{model_admin.admin_site.name}:groupjobs_jobrun_change", args=[run])
    return request.get_full_path()
