"""A path for each view."""

from __future__ import annotations

from django.urls import path

from bazaar import views

NAMES = [
    "page",
    "awaited",
    "stream",
    "awaited_stream",
    "file",
    "gone",
    "unchanged",
    "nothing",
    "fail",
    "fail_late",
    "asks",
    "declines",
    "kept",
    "hit",
    "hit_on_the_loop",
    "awaited_hit",
    "endless",
]
urlpatterns = [path(name, getattr(views, name)) for name in NAMES]
