"""The recruiter and the queues of a process, made from the settings.

They are made once, when the app is ready or a module asks for them earlier. Jobs are
installed by setup functions, which run before the first lottery, and again in a forked
child. So nothing is connected while the site starts, and gunicorn may load the site
before it forks.
"""

from __future__ import annotations

import os
from asyncio import _get_running_loop
from functools import cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.module_loading import import_string

from workstealing.errors import ConfigurationError
from workstealing.integrations.django.site_settings import SiteSettings, read_settings
from workstealing.recruiting.recruiter import Recruiter

if TYPE_CHECKING:
    from workstealing.client.task_queue import TaskQueue
    from workstealing.tasks.registry import Registry

__all__ = (
    "EMBEDDED",
    "forbid_embedded_server",
    "get_queue",
    "get_recruiter",
    "get_settings",
    "leads_to",
    "may_block",
    "unlisted_registry",
)

EMBEDDED = "WORKSTEALING_EMBEDDED"
"""The variable that allows the embedded Redis server, or forbids it (`never`)."""

_TASK_BACKEND = "workstealing.integrations.django.TaskBackend"


def forbid_embedded_server() -> None:
    """Forbid the embedded Redis server for this process, unless `DEBUG` is True.

    It is private to a host and ends with its last user: a production site that lacks a
    URL would lose its tasks. A variable that is set already is left as it is.
    """
    if not settings.DEBUG:
        os.environ.setdefault(EMBEDDED, "never")


@cache
def get_settings() -> SiteSettings:
    """Return the setting `WORKSTEALING`, checked."""
    return read_settings(getattr(settings, "WORKSTEALING", {}))


@cache
def get_recruiter() -> Recruiter:
    """Return the recruiter of this process.

    `@get_recruiter().job(rate=0.01)` installs a job from a `jobs.py`.
    """
    options = dict(get_settings().recruiter)
    observers = [
        import_string(observer) if isinstance(observer, str) else observer
        for observer in options.pop("observers", ())
    ]
    recruiter = Recruiter(**options, observers=observers)
    recruiter.setup(_install_jobs)
    if get_settings().queues:
        recruiter.setup(_install_upkeep)
    return recruiter


def get_queue(name: str) -> TaskQueue:
    """Return a queue of the settings.

    Raises:
        ConfigurationError: the settings have no queue of that name, and no backend in
            `TASKS` allows any name.
    """
    queues = _queues()
    if name not in queues:
        if _is_any_allowed():
            return _unlisted_queue(name)
        known = ", ".join(map(repr, queues)) or "no queue"
        raise ConfigurationError(
            f'there is no queue {name!r}: add it, WORKSTEALING["QUEUES"] ='
            f" {{{name!r}: {{}}, …}}, or use one that is configured ({known})"
        )
    return queues[name]


@cache
def unlisted_registry() -> Registry:
    """Return the tasks of all queues that the settings do not list."""
    from workstealing.integrations.django.database_connections import ClosingRegistry

    return ClosingRegistry()


def leads_to(path: str, ours: str) -> bool:
    """Return whether a path of the settings names our class, or a subclass of it."""
    try:
        found = import_string(path)
        return isinstance(found, type) and issubclass(found, import_string(ours))
    except ImportError:
        return False


def may_block() -> bool:
    """Return whether a slice may run here: not in the thread of an event loop."""
    return _get_running_loop() is None


@cache
def _queues() -> dict[str, TaskQueue]:
    plans = get_settings().queues
    if not plans:
        return {}
    # Only now: it imports redis-py, which a site without queues does not need.
    from workstealing.client.task_queue import TaskQueue
    from workstealing.integrations.django.database_connections import ClosingRegistry

    redis = get_settings().redis
    return {
        name: TaskQueue(name, redis=redis, registry=ClosingRegistry(), **plan.options)
        for name, plan in plans.items()
    }


def _is_any_allowed() -> bool:
    return any(
        not backend.get("QUEUES", ["default"])
        and leads_to(backend.get("BACKEND", ""), _TASK_BACKEND)
        for backend in getattr(settings, "TASKS", {}).values()
    )


@cache
def _unlisted_queue(name: str) -> TaskQueue:
    from workstealing.client.task_queue import TaskQueue

    redis = get_settings().redis
    return TaskQueue(name, redis=redis, registry=unlisted_registry())


def _install_jobs(recruiter: Recruiter) -> None:
    for name, plan in get_settings().jobs.items():
        job: Any = import_string(plan.path)
        recruiter.install(job, name, **plan.options)


def _install_upkeep(recruiter: Recruiter) -> None:
    from workstealing.workers.upkeep import WorkStealer

    for name, plan in get_settings().queues.items():
        if plan.upkeep is not None:
            job = WorkStealer(get_queue(name), by="web")
            recruiter.install(job, f"upkeep:{name}", every=plan.upkeep)
