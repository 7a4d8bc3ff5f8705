"""The Django app: reads the settings, and finds jobs and tasks, when a site starts."""

from __future__ import annotations

from django.apps import AppConfig

__all__ = ("WorkStealingConfig",)


class WorkStealingConfig(AppConfig):
    """`INSTALLED_APPS = ["workstealing.integrations.django", …]`."""

    name = "workstealing.integrations.django"
    label = "workstealing"
    verbose_name = "Work stealing"

    def ready(self) -> None:
        """Fail now if the settings are wrong; import what the apps offer."""
        from django.core.checks import register

        from workstealing.integrations.django.checks import CHECKS
        from workstealing.integrations.django.discovery import discover
        from workstealing.integrations.django.shared import get_recruiter

        get_recruiter()
        discover()
        for check in CHECKS:
            register(check)
