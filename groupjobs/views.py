"""Views for probes and for Prometheus; a project includes `groupjobs.urls` where only those can reach it."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from groupjobs import health


@require_safe
@never_cache
def health_view(request: HttpRequest) -> HttpResponse:
    """200 when jobs are being served, else 503; JSON: ok, problems in words, and the facts about each queue."""
    found = health.check()
    told = {"ok": found.ok, "problems": list(found.problems), "queues": found.queues}
    return JsonResponse(told, status=200 if found.ok else 503)


@require_safe
@never_cache
def metrics_view(request: HttpRequest) -> HttpResponse:
    """The metrics as text for Prometheus; 501 when the extra is not installed, which the text names."""
    try:
        from groupjobs.metrics import exposition
    except ImproperlyConfigured as error:
        return HttpResponse(str(error), status=501, content_type="text/plain")
    return HttpResponse(exposition.exposition(), content_type=exposition.CONTENT_TYPE)
