"""Addresses of the logbook's pages."""

from __future__ import annotations

from django.urls import path

from project.logbook import views

app_name = "logbook"

urlpatterns = [
    path("", views.home, name="home"),
    path("uploads/<int:pk>/", views.upload, name="upload"),
    path("uploads/<int:pk>/progress.json", views.upload_progress, name="upload-progress"),
    path("aircraft/", views.fleet, name="fleet"),
    path("aircraft/<str:tail>/", views.logbook, name="logbook"),
]
