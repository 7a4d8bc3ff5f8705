"""Finds keys that were written without a time to live, and gives them one.

A slice looks at one page of keys that match a pattern (`SCAN`, about *batch* keys) and
gives those without a TTL *ttl* seconds plus a random share of up to *jitter* of it, so
that they do not expire all at once. The cursor is kept in Redis and shared; in a
Cluster every node has its own, and slices visit the nodes in turn. Newest servers:
none adds a TTL to keys; the best cure is still `SET … EX` at the writer.

It starts as a dry run: with `dry_run=True`, the default, nothing is changed, and
`report()` shows how many keys would be, and some of them. Once `report().complete` is
True and the keys are right, install it with `dry_run=False`.

A key that has a TTL never gets another one: check and change are one step. A key that
is meant to stay forever and matches the pattern is not safe: look at the report. Keys
that other jobs keep have no TTL either; choose a pattern that does not match them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from workstealing._checks import checked_batch, checked_number, is_text, milliseconds
from workstealing.chance import SYSTEM_CHANCE, Chance
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.errors import ConfigurationError, Conflict
from workstealing.jobs.job_keys import Value, beside, by_slot, checked_key
from workstealing.jobs.redis_job import AsyncRedisJob, RedisJob, call_script, duty_of
from workstealing.jobs.shared_scan import SharedScan
from workstealing.queue.steps import Call, Flow, RedisCommand, ask
from workstealing.recruiting.job import Duty

__all__ = ("AsyncMissingTTL", "MissingTTL", "TTLReport")

_SAMPLES = 20
_SUFFIXES = ("dry", "dry:samples", "giving", "giving:samples")


@dataclass(frozen=True, slots=True)
class TTLReport:
    """What the last pass found; during the first pass, what it has found so far."""

    complete: bool
    """Whether every node was scanned to its end at least once."""
    scanned: int
    """Keys that match the pattern."""
    without_ttl: int
    """How many of them had no time to live."""
    given: int
    """How many of these were given one; 0 in a dry run."""
    samples: tuple[Value, ...]
    """Some keys that had none, the most recent first."""


class MissingTTL(RedisJob):
    """Gives a time to live to keys that have none.

    *key* is where the job keeps its state; *jitter* is a share of *ttl*.
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
        self._steps = _MissingTTLSteps(
            key, pattern, ttl, jitter, dry_run, batch, chance
        )

    def report(self) -> TTLReport:
        """Return what the last pass found."""
        return self._driver.run(self._steps.report())

    def recruited(self) -> Duty:
        """Check about *batch* keys of one node."""
        return self._driver.run(self._steps.scan())


class AsyncMissingTTL(AsyncRedisJob):
    """`MissingTTL` for asyncio."""

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
        self._steps = _MissingTTLSteps(
            key, pattern, ttl, jitter, dry_run, batch, chance
        )

    async def report(self) -> TTLReport:
        """Return what the last pass found."""
        return await self._driver.run(self._steps.report())

    async def recruited(self) -> Duty:
        """Check about *batch* keys of one node."""
        return await self._driver.run(self._steps.scan())


class _MissingTTLSteps:
    """The steps of both classes: what they ask of Redis."""

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
            raise ConfigurationError(
                f"pattern must be a glob such as 'cache:*', not {pattern!r}"
            )
        checked_number(jitter, "jitter", zero=True)
        mode = "dry" if dry_run else "giving"
        self._state = beside(checked_key(key), mode)
        self._samples = beside(key, f"{mode}:samples")
        self._scan = SharedScan(self._state, pattern, checked_batch(batch))
        self._ttl_ms = milliseconds(ttl)
        self._jitter = jitter
        self._dry_run = dry_run
        self._chance = chance
        # The keys of the job have no TTL either, and may match the pattern.
        names = [beside(key, suffix) for suffix in _SUFFIXES]
        self._ours = {*names, *(name.encode() for name in names)}

    def scan(self) -> Flow[Duty]:
        page = yield from self._scan.page()
        keys = [key for key in page.keys if key not in self._ours]
        found: list[Value] = []
        for group in by_slot(keys, page.nodes):
            found += yield from self._give(group)
        if found:
            yield from ask(self._remember(found[:_SAMPLES]))
        given = 0 if self._dry_run else len(found)
        counts = {"scanned": len(keys), "without": len(found), "given": given}
        if not (yield from ask(self._scan.advance(page, counts))):
            raise Conflict("another recruit scanned the same page of keys")
        return duty_of(len(found), more=bool(found) and not page.ends_pass)

    def report(self) -> Flow[TTLReport]:
        counts, complete = yield from self._scan.counts()
        parts = ("ZRANGE", self._samples, 0, -1, "REV")
        samples = yield from ask(RedisCommand(parts, tuple))
        return TTLReport(
            complete=complete,
            scanned=counts.get("scanned", 0),
            without_ttl=counts.get("without", 0),
            given=counts.get("given", 0),
            samples=samples,
        )

    def _give(self, keys: list[Value]) -> Flow[list[Value]]:
        ttls = tuple(self._draw_ttl() for _ in keys)
        call = call_script("ttl_give", {"keys": keys}, list, ttls=ttls)
        positions = yield from ask(call)
        return [keys[position] for position in positions]

    def _draw_ttl(self) -> int:
        if self._dry_run:
            return 0
        return round(self._ttl_ms * (1 + self._jitter * self._chance.random()))

    def _remember(self, keys: list[Value]) -> Call[int]:
        samples = {"samples": self._samples}
        return call_script("ttl_sample", samples, int, most=_SAMPLES, found=keys)
