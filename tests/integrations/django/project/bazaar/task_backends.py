"""A backend of the site's own."""

from __future__ import annotations

from workstealing.integrations.django import TaskBackend


class OwnBackend(TaskBackend):
    """As that of the package."""
