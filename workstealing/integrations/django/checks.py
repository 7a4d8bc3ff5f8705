"""System checks: `manage.py check` says what in the settings cannot do what is meant.

Settings that are plainly wrong are no checks: they stop the site when it starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution
from django.utils.module_loading import import_string

from workstealing.integrations.django.caches import EnlistingCache
from workstealing.integrations.django.discovery import left_out
from workstealing.integrations.django.middleware import EnlistMiddleware
from workstealing.integrations.django.shared import get_settings
from workstealing.recruiting.roster import slice_of

__all__ = (
    "CHECKS",
    "check_enlisting",
    "check_jobs",
    "check_middleware",
    "check_modules",
    "check_redis",
)

_VARIABLE = "WORKSTEALING_URL"
_OURS = f"{EnlistMiddleware.__module__}.{EnlistMiddleware.__name__}"
_CACHING = tuple(
    f"django.middleware.cache.{name}"
    for name in ("UpdateCacheMiddleware", "FetchFromCacheMiddleware", "CacheMiddleware")
)


def check_middleware(**_: Any) -> list[CheckMessage]:
    """Is the middleware there once, and before those that answer from a cache?"""
    middleware = list(settings.MIDDLEWARE)
    if middleware.count(_OURS) > 1:
        return [
            Error(
                f"MIDDLEWARE has {_OURS} {middleware.count(_OURS)} times.",
                hint="Each enlists: keep the first one only.",
                id="workstealing.E001",
            )
        ]
    before = middleware[: middleware.index(_OURS)] if _OURS in middleware else []
    return [
        Caution(
            f"{_OURS} comes after {other}.",
            hint="Make it the first of MIDDLEWARE: a page that comes from the cache"
            " never reaches it where it is.",
            id="workstealing.W001",
        )
        for other in _CACHING
        if other in before
    ]


def check_enlisting(**_: Any) -> list[CheckMessage]:
    """Does anybody enlist, and is the store gate told of round trips?"""
    hooked = list(_hooked_caches())
    found: list[CheckMessage] = []
    after_requests = _OURS in settings.MIDDLEWARE and get_settings().when is not None
    if not after_requests and not hooked:
        found.append(
            Caution(
                "Nobody enlists: requests do not, and no cache does.",
                hint=f'Make "{_OURS}" the first of MIDDLEWARE, and let'
                ' WORKSTEALING["WHEN"] not be None.',
                id="workstealing.W002",
            )
        )
    gate = get_settings().recruiter.get("gate")
    if gate is not None and not any(cache.is_remote for cache in hooked):
        found.append(
            Caution(
                'WORKSTEALING["RECRUITER"]["gate"] hears of no round trip.',
                hint="It listens to hits of a cache in Redis: use the RedisCache of"
                " workstealing.integrations.django.caches, or leave the gate out.",
                id="workstealing.W003",
            )
        )
    return found


def check_jobs(**_: Any) -> list[CheckMessage]:
    """Are the jobs of the settings where they say?"""
    return [
        Error(
            f'WORKSTEALING["JOBS"]["{name}"]["job"]: {problem}.',
            hint="Write the dotted path of a function, or of an object with"
            " recruited().",
            id="workstealing.E002",
        )
        for name, plan in get_settings().jobs.items()
        if (problem := _problem(plan.path))
    ]


def check_modules(**_: Any) -> list[CheckMessage]:
    """Were all modules of jobs and tasks imported?"""
    return [
        Caution(
            f"{path} was left out: {why}.",
            hint="Install what it needs, if its jobs or tasks are meant for us.",
            id="workstealing.W004",
        )
        for path, why in left_out().items()
    ]


def check_redis(**_: Any) -> list[CheckMessage]:
    """Do the settings and the environment name the same server?"""
    url, other = get_settings().redis, os.environ.get(_VARIABLE)
    if url is None or not other or other == url:
        return []
    # Neither is repeated: they may hold passwords.
    return [
        Caution(
            f'WORKSTEALING["REDIS"] and ${_VARIABLE} name different servers.',
            hint="The setting is used here, but the command `workstealing` knows only"
            " the environment: keep one of the two.",
            id="workstealing.W005",
        )
    ]


CHECKS = (check_middleware, check_enlisting, check_jobs, check_modules, check_redis)


def _hooked_caches() -> Iterator[type[EnlistingCache]]:
    backends: Iterable[str] = (
        one.get("BACKEND", "") for one in settings.CACHES.values()
    )
    for path in backends:
        try:
            backend = import_string(path)
        except ImportError:
            continue
        if isinstance(backend, type) and issubclass(backend, EnlistingCache):
            yield backend


def _problem(path: str) -> str:
    try:
        _, is_coroutine = slice_of(import_string(path))
    except Exception as error:  # noqa: BLE001 - the module is the site's own
        return f"{type(error).__name__}: {error}".rstrip(".")
    return (
        "it is a coroutine function, which nobody awaits here" if is_coroutine else ""
    )
