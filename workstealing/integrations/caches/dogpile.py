"""Hooks on dogpile.cache: a proxy for `make_region().configure(…, wrap=[…])`.

It sees what the backend holds, not what the region thinks of it: a value that is older
than the region's expiration time is a hit here, although the region has it made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dogpile.cache.api import NO_VALUE
from dogpile.cache.proxy import ProxyBackend

from workstealing.integrations.caches.hooks import Hooks, OnMiss
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("EnlistingProxy",)


class EnlistingProxy(ProxyBackend):
    """Enlists on each hit of a backend, and calls `on_miss(key)` on each miss.

    Several keys at once are one hit if any was found, and one miss for each that was
    not.
    """

    def __init__(self, recruiter: Recruiter, *, on_miss: OnMiss | None = None) -> None:
        self._hooks = Hooks(recruiter, on_miss)

    def get(self, key: str) -> Any:
        """Return what the backend has."""
        value = self.proxied.get(key)
        self._note(key, value)
        return value

    def get_serialized(self, key: str) -> Any:
        """Return what the backend has, as bytes."""
        value = self.proxied.get_serialized(key)
        self._note(key, value)
        return value

    def get_multi(self, keys: Iterable[str]) -> Sequence[Any]:
        """Return what the backend has of each key."""
        keys = list(keys)
        values = self.proxied.get_multi(keys)
        return self._note_all(keys, values)

    def get_serialized_multi(self, keys: Iterable[str]) -> Sequence[Any]:
        """Return what the backend has of each key, as bytes."""
        keys = list(keys)
        values = self.proxied.get_serialized_multi(keys)
        return self._note_all(keys, values)

    def _note(self, key: str, value: Any) -> None:
        if value is NO_VALUE:
            self._hooks.miss(key)
        else:
            self._hooks.hit()

    def _note_all(self, keys: list[str], values: Iterable[Any]) -> Sequence[Any]:
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
