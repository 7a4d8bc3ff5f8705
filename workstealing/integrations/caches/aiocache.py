"""Hooks on aiocache: a plugin for `Cache(…, plugins=[…])`.

aiocache tells a plugin how long a read took. Where that was a round trip to Redis, it
is passed to `enlist(rtt=…)` for the store gate. The timeout of a cache counts its
plugins too, so a slice is given at most half of what is left of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiocache.plugins import BasePlugin

from workstealing.integrations.caches.hooks import AsyncHooks, OnMiss

if TYPE_CHECKING:
    from workstealing.recruiting.aio import AsyncRecruiter

__all__ = ("EnlistingPlugin",)

_STORES = frozenset({"redis", "valkey"})


class EnlistingPlugin(BasePlugin):  # type: ignore[misc]
    """Enlists on each hit, and calls `on_miss(key)`, awaited, on each miss.

    Several keys at once are one hit if any was found, and one miss for each that was
    not.
    """

    def __init__(
        self, recruiter: AsyncRecruiter, *, on_miss: OnMiss | None = None
    ) -> None:
        self._hooks = AsyncHooks(recruiter, on_miss)

    async def post_get(
        self,
        client: Any,
        key: Any,
        default: object = None,
        *_: object,
        took: float = 0.0,
        ret: object = None,
        **__: object,
    ) -> None:
        """Take note of a read; called by aiocache."""
        if ret is None or ret is default:
            await self._hooks.miss(key)
        else:
            await self._hooks.hit(*_terms(client, took))

    async def post_multi_get(
        self,
        client: Any,
        keys: Any,
        *_: object,
        took: float = 0.0,
        ret: Any = (),
        **__: object,
    ) -> None:
        """Take note of a read of several keys; called by aiocache."""
        found = list(zip(keys, ret or (), strict=False))
        missing = [key for key, value in found if value is None]
        if len(missing) < len(found):
            await self._hooks.hit(*_terms(client, took))
        for key in missing:
            await self._hooks.miss(key)


def _terms(client: Any, took: float) -> tuple[float | None, float | None]:
    """Return the seconds to spare, and the round trip."""
    timeout = client.timeout
    spare = (timeout - took) / 2 if timeout else None
    return spare, took if getattr(client, "NAME", None) in _STORES else None
