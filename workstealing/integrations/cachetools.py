"""Hooks on cachetools: any `Cache`, and the decorator `cached`.

A cache is hooked where it is read: `cache[key]`, `get`, `pop`, `setdefault`. It stays
the same object, of a class derived from its own. A value that `__missing__` made is a
miss.

A slice runs where the hit is. If you read the cache under a lock, it runs under your
lock; the `cached` of this module enlists after the lock is released.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

import cachetools

from workstealing.errors import ConfigurationError
from workstealing.integrations.cache_hooks import CacheHooks, OnMiss, derive_class
from workstealing.integrations.memoize import memoized
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("cached", "enlist_on_hits")

AnyCache = TypeVar("AnyCache", bound="cachetools.Cache[Any, Any]")
Function = TypeVar("Function", bound=Callable[..., Any])


def enlist_on_hits(
    cache: AnyCache, recruiter: Recruiter, *, on_miss: OnMiss | None = None
) -> AnyCache:
    """Let a cache enlist on each hit, and call `on_miss(key)` on each miss.

    Returns the same cache.
    """
    if not isinstance(cache, cachetools.Cache):
        raise ConfigurationError(
            f"cache must be a cachetools.Cache, not a {type(cache).__name__}: for any"
            " other mapping, decorate the function with cached()"
        )
    hooks = CacheHooks(recruiter, on_miss)
    return derive_class(cache, lambda own: _enlisting(own, hooks))


def cached(
    cache: MutableMapping[Any, Any],
    recruiter: Recruiter,
    *,
    on_miss: OnMiss | None = None,
    **options: Any,
) -> Callable[[Function], Function]:
    """Do what `cachetools.cached` does, with its options, and enlist on each hit.

    A miss calls `on_miss` with the arguments of the function, after it has returned.
    """
    decorate: Callable[[Function], Function] = cachetools.cached(cache, **options)
    return memoized(decorate, recruiter, on_miss=on_miss)


def _enlisting(own: Any, hooks: CacheHooks) -> type:
    hit, miss = hooks.hit, hooks.miss

    class CachetoolsEnlistCache(own):  # type: ignore[misc]
        # One reader at a time: cachetools demands a lock where there are threads.
        _was_read = False
        _was_missing = False
        _is_evicting = False

        def __getitem__(self, key: Any) -> Any:
            self._was_missing = False
            try:
                value = super().__getitem__(key)
            finally:
                self._was_read = True
            if not (self._was_missing or self._is_evicting):
                hit()
            return value

        def __missing__(self, key: Any) -> Any:
            try:
                return super().__missing__(key)
            finally:
                miss(key)
                self._was_missing = True

        def get(self, key: Any, default: Any = None) -> Any:
            self._was_read = False
            value = super().get(key, default)
            if not self._was_read:
                miss(key)
            return value

        def popitem(self) -> Any:
            # Until cachetools 6 this reads what it is about to evict.
            self._is_evicting = True
            try:
                return super().popitem()
            finally:
                self._is_evicting = False

    return CachetoolsEnlistCache
