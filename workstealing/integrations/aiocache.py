"""Hooks on aiocache: a plugin for `Cache(…, plugins=[…])`.

aiocache passes a plugin the duration of a read. If that was a round trip to Redis, it
goes to `enlist(rtt=…)`, for the store gate. The timeout of a cache includes its
plugins, so a slice gets at most half of its remainder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiocache.plugins import BasePlugin

from workstealing.integrations.cache_hooks import AsyncCacheHooks, OnMiss

if TYPE_CHECKING:
    from workstealing.recruiting.async_recruiter import AsyncRecruiter

__all__ = ("AiocacheEnlistPlugin",)

_STORES = frozenset({"redis", "valkey"})


class AiocacheEnlistPlugin(BasePlugin):  # type: ignore[misc]
    """Enlists on each hit, and calls (or awaits) `on_miss(key)` on each miss.

    Reading several keys at once is one hit if any was found, and one miss for each that
    was not.
    """

    def __init__(
        self, recruiter: AsyncRecruiter, *, on_miss: OnMiss | None = None
    ) -> None:
        self._hooks = AsyncCacheHooks(recruiter, on_miss)

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
        """Handle a read; called by aiocache."""
        if ret is None or ret is default:
            await self._hooks.miss(key)
        else:
            await self._hooks.hit(*_limits(client, took))

    async def post_multi_get(
        self,
        client: Any,
        keys: Any,
        *_: object,
        took: float = 0.0,
        ret: Any = (),
        **__: object,
    ) -> None:
        """Handle a read of several keys; called by aiocache."""
        found = list(zip(keys, ret or (), strict=False))
        missing = [key for key, value in found if value is None]
        if len(missing) < len(found):
            await self._hooks.hit(*_limits(client, took))
        for key in missing:
            await self._hooks.miss(key)


def _limits(client: Any, took: float) -> tuple[float | None, float | None]:
    """Return the seconds that a slice may take, and the round trip."""
    timeout = client.timeout
    spare = (timeout - took) / 2 if timeout else None
    return spare, took if getattr(client, "NAME", None) in _STORES else None
