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

__all__ = ("AccessGuard", "DashboardData", "create_app", "gauges")

_MODULE_OF = {
    "DashboardData": "workstealing.dashboard.dashboard_data",
    "AccessGuard": "workstealing.dashboard.access_guard",
    "create_app": "workstealing.dashboard.app",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)
