"""Hooks on Flask-Caching: `cache.get`, `@cache.cached`, `@cache.memoize`, templates.

They are put on the backend of one application. A hit enlists where it is, in the
request: see the Flask integration for enlisting after the response.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from flask import Flask
from flask_caching import Cache

from workstealing.errors import ConfigurationError
from workstealing.integrations.caches.hooks import Hooks, OnMiss, adopt
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("enlists_on_hits",)


def enlists_on_hits(
    cache: Cache, app: Flask, recruiter: Recruiter, *, on_miss: OnMiss | None = None
) -> Cache:
    """Let the cache of an application enlist on each hit; returns the same cache.

    A miss calls `on_miss(key)`, with the key as Flask-Caching made it. To be called
    after `cache.init_app(app)`.
    """
    backend = app.extensions.get("cache", {}).get(cache)
    if backend is None:
        raise ConfigurationError(
            f"{app!r} does not know this cache yet: call cache.init_app(app) first"
        )
    hooks = Hooks(recruiter, on_miss)
    adopt(backend, lambda own: _enlisting(own, hooks))
    return cache


def _enlisting(own: Any, hooks: Hooks) -> type:
    hit, miss = hooks.hit, hooks.miss
    is_watched: ContextVar[bool] = ContextVar("is_watched", default=True)

    class Enlisting(own):  # type: ignore[misc]
        def get(self, key: str) -> Any:
            value = super().get(key)
            if is_watched.get():
                if value is None:
                    miss(key)
                else:
                    hit()
            return value

        # By this one Flask-Caching reads version numbers of its own. Some backends do
        # it by `get`.
        def get_many(self, *keys: str) -> Any:
            token = is_watched.set(False)
            try:
                return super().get_many(*keys)
            finally:
                is_watched.reset(token)

    return Enlisting
