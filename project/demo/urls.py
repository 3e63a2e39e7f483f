"""Addresses of what only the demo has."""

from __future__ import annotations

from django.urls import path

from project.demo import views

app_name = "demo"

urlpatterns = [
    path("damage/", views.damage, name="damage"),
    path("story/", views.story, name="story"),
]
