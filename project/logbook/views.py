"""The pages: upload a file, watch its import, browse the logbooks."""

from __future__ import annotations

from dataclasses import asdict

from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from project.logbook import chain
from project.logbook.forms import UploadForm
from project.logbook.models import Aircraft, Upload
from project.logbook.standing import standing

PAGE = 50
SHOWN_REFUSALS = 100


@require_http_methods(["GET", "HEAD", "POST"])
def home(request: HttpRequest) -> HttpResponse:
    """The upload form with the latest uploads; POST saves a file, which starts its import."""
    form = UploadForm(request.POST, request.FILES) if request.method == "POST" else UploadForm()
    if form.is_valid():
        return redirect("logbook:upload", pk=save_upload(form.cleaned_data["file"]).pk)
    uploads = Upload.objects.defer("content")[:20]
    status = 422 if form.errors else 200
    return render(request, "logbook/home.html", {"form": form, "uploads": uploads}, status=status)


def save_upload(file: UploadedFile[bytes]) -> Upload:
    """Save the file and, through the receiver of `post_save`, the run that imports it, in one transaction."""
    content = file.read()
    with transaction.atomic():
        name = (file.name or "unnamed")[:200]
        return Upload.objects.create(name=name, content=content, lines=len(content.splitlines()))


@never_cache
@require_GET
def upload(request: HttpRequest, pk: int) -> HttpResponse:
    """One upload: a bar that moves while its legs are entered, and the lines that were refused."""
    found = get_object_or_404(Upload.objects.defer("content"), pk=pk)
    context = {"upload": found, "standing": standing(found), "refusals": found.refusals.all()[:SHOWN_REFUSALS]}
    return render(request, "logbook/upload.html", context)


@never_cache
@require_GET
def upload_progress(request: HttpRequest, pk: int) -> JsonResponse:
    """The same figures for the script of the page, and for the demo."""
    now = standing(get_object_or_404(Upload.objects.defer("content"), pk=pk))
    return JsonResponse({**asdict(now), "percent": now.percent, "over": now.over})


@require_GET
def fleet(request: HttpRequest) -> HttpResponse:
    """All aircraft, by tail number; `q` keeps those whose tail number begins with it."""
    wanted = request.GET.get("q", "").strip().upper()
    found = Aircraft.objects.filter(legs__gt=0, tail__startswith=wanted)
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    return render(request, "logbook/fleet.html", {"page": page, "q": wanted})


@require_GET
def logbook(request: HttpRequest, tail: str) -> HttpResponse:
    """The logbook of one aircraft, with a check of its chain from the first leg to the last."""
    aircraft = get_object_or_404(Aircraft, tail=tail)
    entries = aircraft.entries.select_related("aircraft").order_by("number", "id")
    found = chain.first_break(entries.iterator(chunk_size=500))
    page = Paginator(entries, PAGE).get_page(request.GET.get("page"))
    return render(request, "logbook/logbook.html", {"aircraft": aircraft, "page": page, "gap": found})
