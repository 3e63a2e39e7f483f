"""The buttons that break something, where `make serve` stands behind the web server; nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.utils.functional import SimpleLazyObject
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from project.demo.desk import DAMAGE, Desk


def stage(request: HttpRequest) -> dict[str, Any]:
    """For every template: what the pages tell of the demo's programs; empty where there is none."""
    return {"stage": SimpleLazyObject(lambda: _desk().story()) if settings.DEMO_DESK else {}}


@require_POST
def damage(request: HttpRequest) -> HttpResponse:
    """Order one act of damage, and go back to the page with the button."""
    desk, what = _desk(), request.POST.get("what", "")
    if what not in DAMAGE:
        return HttpResponseBadRequest("unknown damage")
    desk.ask(what)
    back = request.POST.get("next", "")
    return redirect(back if url_has_allowed_host_and_scheme(back, {request.get_host()}) else "logbook:home")


@never_cache
@require_GET
def story(request: HttpRequest) -> HttpResponse:
    """The part of the pages that their script keeps fresh."""
    _desk()
    return render(request, "logbook/story.html")


def _desk() -> Desk:
    if not settings.DEMO_DESK:
        raise Http404
    return Desk(Path(settings.DEMO_DESK))
