"""Hooks on Flask-Caching: `cache.get`, `@cache.cached`, `@cache.memoize`, templates.

They hook the backend of one application. A slice runs where the hit is, in the request:
see the Flask integration for enlisting after the response.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from flask import Flask
from flask_caching import Cache

from workstealing.errors import ConfigurationError
from workstealing.integrations.cache_hooks import CacheHooks, OnMiss, derive_class
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("enlist_on_hits",)


def enlist_on_hits(
    cache: Cache, recruiter: Recruiter, *, app: Flask, on_miss: OnMiss | None = None
) -> Cache:
    """Let the cache of an application enlist on each hit; returns the same cache.

    A miss calls `on_miss(key)`, with the key that Flask-Caching made. Call it after
    `cache.init_app(app)`.
    """
    backend = app.extensions.get("cache", {}).get(cache)
    if backend is None:
        raise ConfigurationError(
            f"{app!r} does not have this cache yet: call cache.init_app(app) first"
        )
    hooks = CacheHooks(recruiter, on_miss)
    derive_class(backend, lambda own: _enlisting(own, hooks))
    return cache


def _enlisting(own: Any, hooks: CacheHooks) -> type:
    hit, miss = hooks.hit, hooks.miss
    is_user_read: ContextVar[bool] = ContextVar("is_user_read", default=True)

    class FlaskCachingEnlistBackend(own):  # type: ignore[misc]
        def get(self, key: str) -> Any:
            value = super().get(key)
            if is_user_read.get():
                if value is None:
                    miss(key)
                else:
                    hit()
            return value

        # Flask-Caching reads its own version numbers with it, and some backends
        # implement it with `get`.
        def get_many(self, *keys: str) -> Any:
            token = is_user_read.set(False)
            try:
                return super().get_many(*keys)
            finally:
                is_user_read.reset(token)

    return FlaskCachingEnlistBackend
