"""Addresses for `include("groupjobs.urls")`: health/ for probes, metrics/ for Prometheus."""

from __future__ import annotations

from django.urls import path

from groupjobs.views import health_view, metrics_view

app_name = "groupjobs"
urlpatterns = [
    path("health/", health_view, name="health"),
    path("metrics/", metrics_view, name="metrics"),
]
