"""Hooks on Django's cache framework: backends that enlist on hits.

`"BACKEND": "workstealing.integrations.django.RedisCache"` in `CACHES`, with all other
options as before. `LocMemCache` and `DjangoRedisCache` (for django-redis) are the same
for other backends; any other takes the mixin:
`class MyCache(EnlistCacheMixin, PyMemcacheCache): ...`.

`"ON_MISS"` beside `"BACKEND"` is a function, or its dotted path, that is called with
the key of each miss: to have a task compute the value, for instance.

A slice runs where the hit is, in the request; the middleware enlists after the
response. In the thread of an event loop a hit does not enlist, because a slice would
block the loop: use `aget` there. Reading several keys at once is one hit if any was
found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, ClassVar

from django.core.cache.backends import locmem, redis
from django.core.cache.backends.base import BaseCache
from django.utils.module_loading import import_string

from workstealing.errors import ConfigurationError
from workstealing.integrations.cache_hooks import CacheHooks
from workstealing.integrations.django.site import get_recruiter, may_block

__all__ = ("EnlistCacheMixin", "LocMemCache", "RedisCache")

_MISSING = object()


class EnlistCacheMixin:
    """Enlists on each hit of the backend that it is mixed into; comes before it."""

    is_remote: ClassVar[bool] = False
    """Whether a read is a round trip to Redis, which the store gate measures."""

    def __init__(self, location: Any, params: dict[str, Any]) -> None:
        own: Any = super()
        own.__init__(location, params)
        self._hooks = CacheHooks(get_recruiter(), _on_miss(params.get("ON_MISS")))

    def get(
        self, key: Any, default: Any = None, version: int | None = None, **options: Any
    ) -> Any:
        """Return the value of a key, or *default*."""
        own: Any = super()
        began_at = perf_counter()
        value = own.get(key, _MISSING, version=version, **options)
        if value is _MISSING:
            self._hooks.miss(key)
            return default
        self._enlist(began_at)
        return value

    def get_many(
        self, keys: Iterable[Any], version: int | None = None, **options: Any
    ) -> Any:
        """Return the keys that have a value, and their values."""
        own: Any = super()
        wanted = list(keys)
        began_at = perf_counter()
        if own.get_many.__func__ is BaseCache.get_many:
            # It would call our `get` for each key, and so enlist for each key.
            pairs = ((key, own.get(key, _MISSING, version=version)) for key in wanted)
            found = {key: value for key, value in pairs if value is not _MISSING}
        else:
            found = own.get_many(wanted, version=version, **options)
        if found:
            self._enlist(began_at)
        for key in wanted:
            if key not in found:
                self._hooks.miss(key)
        return found

    def _enlist(self, began_at: float) -> None:
        if may_block():
            self._hooks.hit(None, perf_counter() - began_at if self.is_remote else None)


class LocMemCache(EnlistCacheMixin, locmem.LocMemCache):
    """Django's cache in the memory of the process."""


class RedisCache(EnlistCacheMixin, redis.RedisCache):
    """Django's cache in Redis."""

    is_remote = True


def _on_miss(given: Any) -> Callable[..., object] | None:
    on_miss = import_string(given) if isinstance(given, str) else given
    if on_miss is not None and not callable(on_miss):
        raise ConfigurationError(
            'CACHES: "ON_MISS" must be a function or its dotted path, such as'
            f' "shop.caching.compute", not {given!r}'
        )
    return on_miss  # type: ignore[no-any-return]
