"""The Django app: reads the settings, and finds jobs and tasks, when a site starts.

With `DEBUG = False` it forbids the embedded Redis server for the whole process.
"""

from __future__ import annotations

from django.apps import AppConfig

__all__ = ("WorkStealingConfig",)


class WorkStealingConfig(AppConfig):
    """`INSTALLED_APPS = ["workstealing.integrations.django", …]`."""

    name = "workstealing.integrations.django"
    label = "workstealing"
    verbose_name = "Work stealing"

    def ready(self) -> None:
        """Raise if the settings are wrong; import the jobs and tasks of all apps."""
        from django.core.checks import register

        from workstealing.integrations.django.autodiscover import discover
        from workstealing.integrations.django.checks import CHECKS
        from workstealing.integrations.django.site import (
            forbid_embedded_server,
            get_recruiter,
        )

        forbid_embedded_server()
        get_recruiter()
        discover()
        for check in CHECKS:
            register(check)
