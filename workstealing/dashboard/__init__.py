"""The web dashboard of the queues of a server; needs the extra `dashboard`.

`gauges`, which writes the numbers of queues for Prometheus, needs no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workstealing.dashboard.gauges import gauges

if TYPE_CHECKING:
    from workstealing.dashboard.access_guard import AccessGuard
    from workstealing.dashboard.app import create_app
    from workstealing.dashboard.dashboard_data import DashboardData
    from workstealing.dashboard.django_site import django_dashboard
    from workstealing.dashboard.flask_site import flask_dashboard
    from workstealing.dashboard.mounting import asgi_dashboard, wsgi_dashboard

__all__ = (
    "AccessGuard",
    "DashboardData",
    "asgi_dashboard",
    "create_app",
    "django_dashboard",
    "flask_dashboard",
    "gauges",
    "wsgi_dashboard",
)

_MODULE_OF = {
    "DashboardData": "workstealing.dashboard.dashboard_data",
    "AccessGuard": "workstealing.dashboard.access_guard",
    "asgi_dashboard": "workstealing.dashboard.mounting",
    "create_app": "workstealing.dashboard.app",
    "django_dashboard": "workstealing.dashboard.django_site",
    "flask_dashboard": "workstealing.dashboard.flask_site",
    "wsgi_dashboard": "workstealing.dashboard.mounting",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)
