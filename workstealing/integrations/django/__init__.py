"""Django: side work after requests and cache hits, and task queues.

`INSTALLED_APPS = ["workstealing.integrations.django", …]`, the setting `WORKSTEALING`,
and `"workstealing.integrations.django.DjangoEnlistMiddleware"` as the first of
`MIDDLEWARE`. The rest is in docs/integrations/django.md.

The names that settings refer to are imported when they are asked for: Django imports
this package before its apps are ready, `TaskBackend` needs Django 6.0, and
`DjangoRedisCache` needs django-redis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workstealing.integrations.django.site import get_queue, get_recruiter

if TYPE_CHECKING:
    from workstealing.integrations.django.caches import (
        EnlistCacheMixin,
        LocMemCache,
        RedisCache,
    )
    from workstealing.integrations.django.caches_django_redis import DjangoRedisCache
    from workstealing.integrations.django.middleware import DjangoEnlistMiddleware
    from workstealing.integrations.django.on_commit import submit_on_commit
    from workstealing.integrations.django.task_backend import TaskBackend

__all__ = (
    "DjangoEnlistMiddleware",
    "DjangoRedisCache",
    "EnlistCacheMixin",
    "LocMemCache",
    "RedisCache",
    "TaskBackend",
    "get_queue",
    "get_recruiter",
    "submit_on_commit",
)

_ON_DEMAND = {
    "DjangoEnlistMiddleware": "middleware",
    "DjangoRedisCache": "caches_django_redis",
    "EnlistCacheMixin": "caches",
    "LocMemCache": "caches",
    "RedisCache": "caches",
    "TaskBackend": "task_backend",
    "submit_on_commit": "on_commit",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
