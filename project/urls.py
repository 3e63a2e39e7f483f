"""Addresses of the demo project: the logbook's pages, the admin, and the demo's buttons."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.staticfiles.storage import staticfiles_storage
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin/", admin.site.urls),
    path("groupjobs/", include("groupjobs.urls")),
    path("favicon.ico", RedirectView.as_view(url=staticfiles_storage.url("logbook/icon.svg"))),
    path("demo/", include("project.demo.urls")),
    path("", include("project.logbook.urls")),
]
