"""Trims sorted sets and streams to a time window or to a length.

Each slice trims one key by up to *batch* of its oldest entries, atomically: what is
inside the window or the length is never touched. With several keys a slice draws one by
chance, and stays with it while it is full of garbage, but not forever. Nothing is
stored for that, so slices work on a full server too. Newest servers: `XADD … MAXLEN ~`
trims a stream at each write, which is enough unless it falls idle; `XTRIM … ACKED`
(Redis >= 8.2) spares pending entries; no command bounds a sorted set.

A sorted set is trimmed exactly; for `age`, its scores are server times in *unit*. A
stream is trimmed by whole nodes (100 entries unless `stream-node-max-entries` says
otherwise), so up to one node too many stays, and a slice may remove one node where
*batch* is less. Entries that consumers have not acknowledged are trimmed as well.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.errors import ConfigurationError
from workstealing.jobs.checking import checked_batch, milliseconds
from workstealing.jobs.face import AsyncRedisJob, RedisJob
from workstealing.jobs.naming import checked_key
from workstealing.queue.call import Argument, Call, Flow, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncWindowTrimmer", "WindowTrimmer")

Unit = Literal["s", "ms"]

# A key that grows faster than it is trimmed must not keep the others waiting.
_STAY = 0.9


class WindowTrimmer(RedisJob):
    """Keeps sorted sets and streams in bounds; the sync face.

    Give *age* (what is older goes) or *length* (the oldest beyond it go).
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
        self._body = _Body(keys, age, length, unit, batch, chance)

    def recruited(self) -> Duty:
        """Remove up to *batch* entries of one key that are out of bounds."""
        return self._driver.run(self._body.trim())


class AsyncWindowTrimmer(AsyncRedisJob):
    """Keeps sorted sets and streams in bounds; the asyncio face.

    Give *age* (what is older goes) or *length* (the oldest beyond it go).
    """

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
        self._body = _Body(keys, age, length, unit, batch, chance)

    async def recruited(self) -> Duty:
        """Remove up to *batch* entries of one key that are out of bounds."""
        return await self._driver.run(self._body.trim())


class _Body:
    """What both faces ask of Redis."""

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
            raise ConfigurationError("give at least one key to trim")
        if unit not in ("s", "ms"):
            raise ConfigurationError(f"unit must be 's' or 'ms', not {unit!r}")
        self._keys = tuple(map(checked_key, keys))
        self._chance = chance
        self._full: str | None = None
        self._arguments: tuple[Argument, ...] = (
            *_bound(age, length),
            checked_batch(batch),
            1 if unit == "ms" else 1000,
        )

    def trim(self) -> Flow[Duty]:
        key = self._draw()
        script = load_script(__package__, "window_trim")
        removed, more = yield from ask(Call(script, (key,), self._arguments, tuple))
        self._full = key if more else None
        if more:
            return Duty.MORE
        return Duty.RECRUITED if removed else Duty.DISMISSED

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
        raise ConfigurationError("give exactly one of age= and length=")
    if isinstance(length, bool) or not isinstance(length, int) or length < 0:
        raise ConfigurationError(f"length must be 0 or more entries, not {length!r}")
    return "length", length
