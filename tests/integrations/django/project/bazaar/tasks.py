"""Tasks of the site's own queues, if it has any."""

from __future__ import annotations

from django.apps import apps
from django.conf import settings
from django.db import connection

from workstealing.integrations.django import get_queue

if "parcels" in getattr(settings, "WORKSTEALING", {}).get("QUEUES", {}):
    parcels = get_queue("parcels")

    @parcels.task
    def wrap(what: str, ribbons: int = 1) -> str:
        return f"{what} in {ribbons} ribbons"

    @parcels.task
    def stands() -> bool:
        return apps.ready

    @parcels.task
    def opens() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return connection.connection is not None

    @parcels.task
    def finds() -> bool:
        return connection.connection is not None


if any(
    ours in str(getattr(settings, "TASKS", "")) for ours in ("workstealing", "bazaar")
):
    from bazaar import errands

    __all__ = ("errands",)
