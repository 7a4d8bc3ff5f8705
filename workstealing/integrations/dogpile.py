"""Hooks on dogpile.cache: a proxy for `make_region().configure(…, wrap=[…])`.

It sees what the backend holds, not how the region judges it: a value older than the
region's expiration time is a hit here, although the region recomputes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dogpile.cache.api import NO_VALUE
from dogpile.cache.proxy import ProxyBackend

from workstealing.integrations.cache_hooks import CacheHooks, OnMiss
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("DogpileEnlistProxy",)


class DogpileEnlistProxy(ProxyBackend):
    """Enlists on each hit of a backend, and calls `on_miss(key)` on each miss.

    Reading several keys at once is one hit if any was found, and one miss for each that
    was not.
    """

    def __init__(self, recruiter: Recruiter, *, on_miss: OnMiss | None = None) -> None:
        self._hooks = CacheHooks(recruiter, on_miss)

    def get(self, key: str) -> Any:
        """Return what the backend has."""
        value = self.proxied.get(key)
        self._handle(key, value)
        return value

    def get_serialized(self, key: str) -> Any:
        """Return what the backend has, as bytes."""
        value = self.proxied.get_serialized(key)
        self._handle(key, value)
        return value

    def get_multi(self, keys: Iterable[str]) -> Sequence[Any]:
        """Return what the backend has of each key."""
        keys = list(keys)
        values = self.proxied.get_multi(keys)
        return self._handle_all(keys, values)

    def get_serialized_multi(self, keys: Iterable[str]) -> Sequence[Any]:
        """Return what the backend has of each key, as bytes."""
        keys = list(keys)
        values = self.proxied.get_serialized_multi(keys)
        return self._handle_all(keys, values)

    def _handle(self, key: str, value: Any) -> None:
        if value is NO_VALUE:
            self._hooks.miss(key)
        else:
            self._hooks.hit()

    def _handle_all(self, keys: list[str], values: Iterable[Any]) -> Sequence[Any]:
        if not isinstance(values, Sequence):
            values = list(values)
        missing = [
            key for key, value in zip(keys, values, strict=False) if value is NO_VALUE
        ]
        if len(missing) < len(values):
            self._hooks.hit()
        for key in missing:
            self._hooks.miss(key)
        return values
