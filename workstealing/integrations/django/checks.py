"""System checks: `manage.py check` finds settings that cannot work as intended.

Settings that are plainly wrong are not left to checks: they stop the site at its start.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution
from django.utils.module_loading import import_string

from workstealing.integrations.django.apps import skipped
from workstealing.integrations.django.caches import EnlistCacheMixin
from workstealing.integrations.django.site import EMBEDDED, get_settings, leads_to
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
_OURS = "workstealing.integrations.django.DjangoEnlistMiddleware"
_CACHING = tuple(
    f"django.middleware.cache.{name}"
    for name in ("UpdateCacheMiddleware", "FetchFromCacheMiddleware", "CacheMiddleware")
)


def check_middleware(**_: Any) -> list[CheckMessage]:
    """Is the middleware there once, and before those that answer from a cache?"""
    ours = [n for n, path in enumerate(settings.MIDDLEWARE) if leads_to(path, _OURS)]
    if len(ours) > 1:
        return [
            Error(
                f"MIDDLEWARE has {_OURS} {len(ours)} times.",
                hint="Each of them enlists: keep only the first.",
                id="workstealing.E001",
            )
        ]
    before = settings.MIDDLEWARE[: ours[0]] if ours else ()
    return [
        Caution(
            f"{_OURS} comes after {other}.",
            hint="Make it the first of MIDDLEWARE: where it is, it never sees a page"
            " that comes from the cache.",
            id="workstealing.W001",
        )
        for other in _CACHING
        if other in before
    ]


def check_enlisting(**_: Any) -> list[CheckMessage]:
    """Does anything enlist, and does the store gate learn of round trips?"""
    hooked = list(_hooked_caches())
    found: list[CheckMessage] = []
    has_middleware = any(leads_to(path, _OURS) for path in settings.MIDDLEWARE)
    after_requests = has_middleware and get_settings().when is not None
    if not after_requests and not hooked:
        found.append(
            Caution(
                "Nothing enlists, neither requests nor cache hits, so no job will run.",
                hint=f'Make "{_OURS}" the first of MIDDLEWARE, and do not set'
                ' WORKSTEALING["WHEN"] to None.',
                id="workstealing.W002",
            )
        )
    gate = get_settings().recruiter.get("gate")
    if gate is not None and not any(cache.is_remote for cache in hooked):
        found.append(
            Caution(
                'WORKSTEALING["RECRUITER"]["gate"] never learns of a round trip.',
                hint="It measures hits of a cache in Redis: use"
                " workstealing.integrations.django.RedisCache, or remove the gate.",
                id="workstealing.W003",
            )
        )
    return found


def check_jobs(**_: Any) -> list[CheckMessage]:
    """Can the jobs of the settings be imported?"""
    return [
        Error(
            f'WORKSTEALING["JOBS"]["{name}"]["job"]: {problem}.',
            hint="Use the dotted path of a function, or of an object with recruited().",
            id="workstealing.E002",
        )
        for name, plan in get_settings().jobs.items()
        if (problem := _problem(plan.path))
    ]


def check_modules(**_: Any) -> list[CheckMessage]:
    """Were all modules with jobs and tasks imported?"""
    return [
        Caution(
            f"{path} was skipped: {why}.",
            hint="If this site needs its jobs or tasks, install what is missing.",
            id="workstealing.W004",
        )
        for path, why in skipped().items()
    ]


def check_redis(**_: Any) -> list[CheckMessage]:
    """Is there a Redis, and only one?"""
    url, other = get_settings().redis, os.environ.get(_VARIABLE)
    if url is None and not other and not os.environ.get("REDIS_URL"):
        return _check_embedded()
    if url is None or not other or other == url:
        return []
    # Neither is repeated: they may hold passwords.
    return [
        Caution(
            f'WORKSTEALING["REDIS"] and ${_VARIABLE} name different servers.',
            hint="The site uses the setting, but the command `workstealing` knows only"
            " the environment: keep one of the two.",
            id="workstealing.W005",
        )
    ]


CHECKS = (check_middleware, check_enlisting, check_jobs, check_modules, check_redis)


def _check_embedded() -> list[CheckMessage]:
    if not get_settings().queues or os.environ.get(EMBEDDED) != "never":
        return []
    return [
        Error(
            "The queues have no Redis: no URL is configured, and the embedded server is"
            f" forbidden ({EMBEDDED}=never, the default with DEBUG = False).",
            hint='Set WORKSTEALING["REDIS"], or the variable WORKSTEALING_URL or'
            " REDIS_URL. The embedded server is for development: it is private to one"
            " host, and ends with its last user.",
            id="workstealing.E003",
        )
    ]


def _hooked_caches() -> Iterator[type[EnlistCacheMixin]]:
    backends: Iterable[str] = (
        cache.get("BACKEND", "") for cache in settings.CACHES.values()
    )
    for path in backends:
        try:
            backend = import_string(path)
        except ImportError:
            continue
        if isinstance(backend, type) and issubclass(backend, EnlistCacheMixin):
            yield backend


def _problem(path: str) -> str:
    try:
        _, is_coroutine = slice_of(import_string(path))
    except Exception as error:  # noqa: BLE001 - the module is the site's own
        return f"{type(error).__name__}: {error}".rstrip(".")
    return (
        "it is a coroutine function, but the recruiter does not await"
        if is_coroutine
        else ""
    )
