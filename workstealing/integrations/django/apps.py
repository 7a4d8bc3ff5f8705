"""The Django app: reads the settings, and finds jobs and tasks, when a site starts.

It imports `jobs.py` and `tasks.py` of the installed apps. A `jobs.py` installs its jobs
by a function `install_jobs(recruiter)`, which is run as a setup function; or by
`@get_recruiter().job(…)` when it is imported. A `tasks.py` defines tasks on queues, so
that workers know them.

A module that needs a package that is not installed is skipped, and a system check
reports it: third-party apps may have a `tasks.py` for a queue that this site does not
use. All other errors of a module are raised.

With `DEBUG = False` the app forbids the embedded Redis server for the whole process.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from django.apps import AppConfig, apps
from django.utils.module_loading import module_has_submodule

from workstealing._printing import escaping_logger
from workstealing.integrations.django.site import (
    forbid_embedded_server,
    get_recruiter,
)

__all__ = ("WorkStealingConfig", "discover", "skipped")

logger = escaping_logger(__name__)

_MODULES = ("jobs", "tasks")

_installed: set[str] = set()
_skipped: dict[str, str] = {}


class WorkStealingConfig(AppConfig):
    """`INSTALLED_APPS = ["workstealing.integrations.django", …]`."""

    name = "workstealing.integrations.django"
    label = "workstealing"
    verbose_name = "Work stealing"

    def ready(self) -> None:
        """Raise if the settings are wrong; import the jobs and tasks of all apps."""
        # Only now: Django imports this module before the settings may be read.
        from django.core.checks import register

        from workstealing.integrations.django.checks import CHECKS

        forbid_embedded_server()
        get_recruiter()
        discover()
        for check in CHECKS:
            register(check)


def discover() -> None:
    """Import these modules; a second call changes nothing."""
    for app in apps.get_app_configs():
        for name in _MODULES:
            if app.module is None or not module_has_submodule(app.module, name):
                continue
            module = _imported(f"{app.name}.{name}")
            install: Any = getattr(module, "install_jobs", None)
            if name == "jobs" and callable(install) and module is not None:
                _set_up_once(module.__name__, install)


def skipped() -> dict[str, str]:
    """Return the modules that could not be imported, and why."""
    return dict(_skipped)


def _imported(path: str) -> ModuleType | None:
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        missing, own = str(error.name).partition(".")[0], path.partition(".")[0]
        if missing == own:
            raise
        _skipped[path] = str(error)
        logger.warning("%s was skipped: %s", path, error)
        return None


def _set_up_once(path: str, install: Any) -> None:
    # Tests of a site may load the apps again.
    if path not in _installed:
        _installed.add(path)
        get_recruiter().setup(install)
