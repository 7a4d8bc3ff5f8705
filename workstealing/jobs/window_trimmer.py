"""Trims sorted sets and streams to a time window or to a length.

Each slice trims one key by up to *batch* of its oldest entries, atomically: what is
inside the window or the length is never touched. With several keys a slice draws one at
random, and mostly stays with it while there is more to trim. Nothing is stored for
that, so slices work on a full server too. Newest servers: `XADD … MAXLEN ~`
trims a stream at each write, which is enough unless it becomes idle; `XTRIM … ACKED`
(Redis >= 8.2) keeps pending entries; no command bounds a sorted set.

A sorted set is trimmed exactly; for `age`, its scores are server times in *unit*. A
stream is trimmed by whole nodes (100 entries, or `stream-node-max-entries`), so up to
one node too many stays, and a slice may remove one node where *batch* is less. Entries
that consumers have not acknowledged are trimmed as well.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

from workstealing._checks import checked_batch, checked_whole, milliseconds
from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.errors import ConfigurationError
from workstealing.jobs.job_keys import checked_key
from workstealing.jobs.redis_job import AsyncRedisJob, RedisJob, call_script, duty_of
from workstealing.queue.steps import Flow, ask
from workstealing.recruiting.job import Duty

__all__ = ("AsyncWindowTrimmer", "WindowTrimmer")

Unit = Literal["s", "ms"]

# A key that grows faster than it is trimmed must not keep the others waiting.
_STAY = 0.9


class WindowTrimmer(RedisJob):
    """Keeps sorted sets and streams within bounds.

    Pass *age* (older entries go) or *length* (the oldest entries beyond it go).
    """

    def __init__(
        self,
        redis: Client | str | None,
        *keys: str,
        age: float | timedelta | None = None,
        length: int | None = None,
        unit: Unit = "s",
        batch: int = 100,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        super().__init__(redis)
        self._steps = _WindowTrimmerSteps(keys, age, length, unit, batch, chance)

    def recruited(self) -> Duty:
        """Remove up to *batch* entries of one key that are out of bounds."""
        return self._driver.run(self._steps.trim())


class AsyncWindowTrimmer(AsyncRedisJob):
    """`WindowTrimmer` for asyncio."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        *keys: str,
        age: float | timedelta | None = None,
        length: int | None = None,
        unit: Unit = "s",
        batch: int = 100,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        super().__init__(redis)
        self._steps = _WindowTrimmerSteps(keys, age, length, unit, batch, chance)

    async def recruited(self) -> Duty:
        """Remove up to *batch* entries of one key that are out of bounds."""
        return await self._driver.run(self._steps.trim())


class _WindowTrimmerSteps:
    """The steps of both classes: what they ask of Redis."""

    def __init__(
        self,
        keys: tuple[str, ...],
        age: float | timedelta | None,
        length: int | None,
        unit: Unit,
        batch: int,
        chance: Chance,
    ) -> None:
        if not keys:
            raise ConfigurationError("WindowTrimmer needs at least one key to trim")
        if unit not in ("s", "ms"):
            raise ConfigurationError(f"unit must be 's' or 'ms', not {unit!r}")
        self._keys = tuple(map(checked_key, keys))
        self._chance = chance
        self._full: str | None = None
        by, bound = _bound(age, length)
        self._arguments: dict[str, Any] = {
            "by": by,
            "bound": bound,
            "most": checked_batch(batch),
            "unit": 1 if unit == "ms" else 1000,
        }

    def trim(self) -> Flow[Duty]:
        key = self._draw()
        removed, more = yield from ask(
            call_script("window_trim", {"window": key}, tuple, **self._arguments)
        )
        self._full = key if more else None
        return duty_of(removed, more=bool(more))

    def _draw(self) -> str:
        full = self._full
        if len(self._keys) == 1:
            return self._keys[0]
        if full is not None and self._chance.random() < _STAY:
            return full
        return self._keys[int(self._chance.random() * len(self._keys))]


def _bound(age: float | timedelta | None, length: int | None) -> tuple[str, int]:
    if age is not None and length is None:
        return "age", milliseconds(age, "age")
    if age is not None or length is None:
        raise ConfigurationError("WindowTrimmer needs age= or length=, and not both")
    return "length", checked_whole(length, "length", 0)
