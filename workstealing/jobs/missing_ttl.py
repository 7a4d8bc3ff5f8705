"""Finds keys that forgot their time to live, and gives them one.

A slice looks at one page of keys that match a pattern (`SCAN`, about *batch* keys) and
gives those without a TTL *ttl* seconds and up to *jitter* more of that, by chance, so
that they do not expire all at once. The cursor is kept in Redis and shared; in a
Cluster every node has its own, and slices visit the nodes by turns. Newest servers:
none gives keys a TTL by itself; the best cure is still `SET … EX` where they are made.

It is dry at first: with `dry_run=True`, the default, nothing is changed, and `report()`
shows how many keys would be, and some of them. When `report().complete` and you like
what you see, install it with `dry_run=False`.

A key that has a TTL is never given another one: check and change are one step. A key
that is meant to live for ever and matches the pattern is not safe: look at the report.
Keys that other jobs keep have no TTL either; choose a pattern that spares them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.errors import ConfigurationError, Conflict
from workstealing.jobs.checking import checked_batch, milliseconds
from workstealing.jobs.face import AsyncRedisJob, RedisJob
from workstealing.jobs.naming import beside, checked_key
from workstealing.jobs.scanning import SharedScan
from workstealing.jobs.slots import declared, together
from workstealing.jobs.wording import Value, is_text
from workstealing.queue.call import Call, Command, Flow, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncMissingTTL", "MissingTTL", "TTLReport")

_SAMPLES = 20
_NOTES = ("dry", "dry:samples", "giving", "giving:samples")


@dataclass(frozen=True, slots=True)
class TTLReport:
    """What the last pass found; of an unfinished first pass, what it found so far."""

    complete: bool
    """Whether every node was seen to its end at least once."""
    scanned: int
    """Keys that match the pattern."""
    without_ttl: int
    """Those of them that had no time to live."""
    given: int
    """Those of them that were given one; 0 in a dry run."""
    samples: tuple[Value, ...]
    """Some keys that had none, the latest first."""


class MissingTTL(RedisJob):
    """Gives keys without a time to live one; the sync face.

    *key* is where the job keeps its notes; *jitter* is a share of *ttl*.
    """

    def __init__(
        self,
        redis: Client | str | None,
        key: str,
        pattern: str,
        *,
        ttl: float | timedelta,
        jitter: float = 0.1,
        dry_run: bool = True,
        batch: int = 100,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        super().__init__(redis)
        self._body = _Body(key, pattern, ttl, jitter, dry_run, batch, chance)

    def report(self) -> TTLReport:
        """Tell what the last pass found."""
        return self._driver.run(self._body.report())

    def recruited(self) -> Duty:
        """Look at about *batch* keys of one node."""
        return self._driver.run(self._body.look())


class AsyncMissingTTL(AsyncRedisJob):
    """Gives keys without a time to live one; the asyncio face.

    *key* is where the job keeps its notes; *jitter* is a share of *ttl*.
    """

    def __init__(
        self,
        redis: AsyncClient | str | None,
        key: str,
        pattern: str,
        *,
        ttl: float | timedelta,
        jitter: float = 0.1,
        dry_run: bool = True,
        batch: int = 100,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        super().__init__(redis)
        self._body = _Body(key, pattern, ttl, jitter, dry_run, batch, chance)

    async def report(self) -> TTLReport:
        """Tell what the last pass found."""
        return await self._driver.run(self._body.report())

    async def recruited(self) -> Duty:
        """Look at about *batch* keys of one node."""
        return await self._driver.run(self._body.look())


class _Body:
    """What both faces ask of Redis."""

    def __init__(
        self,
        key: str,
        pattern: str,
        ttl: float | timedelta,
        jitter: float,
        dry_run: bool,
        batch: int,
        chance: Chance,
    ) -> None:
        if not isinstance(pattern, str) or not pattern or not is_text(pattern):
            raise ConfigurationError(f"a pattern is like 'cache:*', not {pattern!r}")
        if not math.isfinite(jitter) or jitter < 0:
            raise ConfigurationError(f"jitter must be 0.0 or more, not {jitter!r}")
        mode = "dry" if dry_run else "giving"
        self._state = beside(checked_key(key), mode)
        self._samples = beside(key, f"{mode}:samples")
        self._scan = SharedScan(self._state, pattern, checked_batch(batch))
        self._ttl_ms = milliseconds(ttl)
        self._jitter = jitter
        self._dry_run = dry_run
        self._chance = chance
        # Our own notes have no TTL, and may match the pattern.
        names = [beside(key, note) for note in _NOTES]
        self._ours = {*names, *(name.encode() for name in names)}

    def look(self) -> Flow[Duty]:
        page = yield from self._scan.page()
        keys = [key for key in page.keys if key not in self._ours]
        found: list[Value] = []
        for group in together(keys, page.nodes):
            found += yield from self._give(group)
        if found:
            yield from ask(self._remember(found[:_SAMPLES]))
        given = 0 if self._dry_run else len(found)
        counts = {"scanned": len(keys), "without": len(found), "given": given}
        if not (yield from ask(self._scan.advance(page, counts))):
            raise Conflict("another recruit has looked at the same page of keys")
        if found and not page.ends_pass:
            return Duty.MORE
        return Duty.RECRUITED if found else Duty.DISMISSED

    def report(self) -> Flow[TTLReport]:
        counts, complete = yield from self._scan.counts()
        parts = ("ZRANGE", self._samples, 0, -1, "REV")
        samples = yield from ask(Command(parts, tuple))
        return TTLReport(
            complete=complete,
            scanned=counts.get("scanned", 0),
            without_ttl=counts.get("without", 0),
            given=counts.get("given", 0),
            samples=samples,
        )

    def _give(self, keys: list[Value]) -> Flow[list[Value]]:
        ttls = tuple(self._draw_ttl() for _ in keys)
        script = load_script(__package__, "ttl_give")
        positions = yield from ask(Call(script, declared(keys), ttls, list))
        return [keys[position] for position in positions]

    def _draw_ttl(self) -> int:
        if self._dry_run:
            return 0
        return round(self._ttl_ms * (1 + self._jitter * self._chance.random()))

    def _remember(self, keys: list[Value]) -> Call[int]:
        script = load_script(__package__, "ttl_sample")
        return Call(script, (self._samples,), (_SAMPLES, *keys), int)
