"""Keeps the keys of one prefix within a budget of keys or bytes.

Call `add(key)` after writing a key. If the index of keys is over budget, a slice draws
*batch* of them at random and evicts the coldest fifth, or fewer if that is enough: the
longest idle (`OBJECT IDLETIME`) or, under an LFU policy, the least frequently used
(`OBJECT FREQ`). Slices that are not over budget repair the index in turn: members whose
key is gone are dropped, and keys that were not added are found by a slow `SCAN`. Newest
servers: `maxmemory` evicts per server, never per prefix; if all keys of the server may
be evicted, use that.

Guaranteed:

- Nothing is evicted while the index is within budget, and one recruit evicts at a time
  (others raise `Conflict`). A recruit that is slower than its lease of 10 seconds may
  evict together with the next one: that is one batch too many.
- A key that was used since it was inspected is not evicted, as far as the server knows:
  idle time is in whole seconds.
- A key is removed first and its index entry second, so a crash in between leaves an
  entry without a key, which is dropped later. A key that is written and added again
  meanwhile keeps its entry: only entries older than the inspection are removed.

Not guaranteed: the budget is exceeded by what is written between slices, and by keys
that were not added, until the scan finds them. Bytes are an estimate until every key
was measured once: the mean of those measured (`MEMORY USAGE`) times the number of keys.

In a Cluster the keys may be in any slot; the index is in one. A slice then costs about
one round trip per key that it inspects: choose a smaller *batch*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from workstealing._checks import checked_batch, checked_whole, is_text
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.errors import ConfigurationError, Conflict
from workstealing.jobs.job_keys import Value, beside, by_slot, checked_key
from workstealing.jobs.job_leases import (
    AbandonedLeases,
    release_leases,
    releasing_on_error,
)
from workstealing.jobs.redis_job import AsyncRedisJob, RedisJob, call_script, duty_of
from workstealing.jobs.shared_scan import SharedScan
from workstealing.queue.steps import Call, Flow, Nodes, RedisCommand, ask
from workstealing.recruiting.job import Duty

__all__ = ("AsyncNamespaceBudget", "NamespaceBudget", "Usage")

_LEASE_MS = 10_000
# Lua counts in floats, exactly up to here.
_MOST_BYTES = 2**53
_SAMPLES_PER_EVICTION = 5
_OVER, _CHECK, _BUSY = 2, 1, -1
_GLOB = re.compile(r"([*?\[\]\\])")


@dataclass(frozen=True, slots=True)
class Usage:
    """How large a namespace is."""

    keys: int
    """Keys in the index."""
    bytes: int
    """Their estimated size; 0 if there is no budget of bytes."""


class NamespaceBudget(RedisJob):
    """Evicts keys of a prefix that is over its budget.

    *key* is where the index is kept. Give *most_keys*, *most_bytes*, or both.
    """

    def __init__(
        self,
        redis: Client | str | None,
        key: str,
        prefix: str,
        *,
        most_keys: int | None = None,
        most_bytes: int | None = None,
        batch: int = 50,
    ) -> None:
        super().__init__(redis)
        self._steps = _NamespaceBudgetSteps(key, prefix, most_keys, most_bytes, batch)

    def add(self, *keys: Value) -> int:
        """Add keys that were just written; return how many are new."""
        return self._driver.call(self._steps.add(keys))

    def touch(self, *keys: Value) -> int:
        """Mark keys as used without reading them; return how many exist."""
        return self._driver.run(self._steps.touch(keys))

    def usage(self) -> Usage:
        """Return how large the namespace is."""
        return self._driver.call(self._steps.usage())

    def recruited(self) -> Duty:
        """Evict what is over budget, or repair a part of the index."""
        return self._driver.run(self._steps.enforce())


class AsyncNamespaceBudget(AsyncRedisJob):
    """`NamespaceBudget` for asyncio."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        key: str,
        prefix: str,
        *,
        most_keys: int | None = None,
        most_bytes: int | None = None,
        batch: int = 50,
    ) -> None:
        super().__init__(redis)
        self._steps = _NamespaceBudgetSteps(key, prefix, most_keys, most_bytes, batch)

    async def add(self, *keys: Value) -> int:
        """Add keys that were just written; return how many are new."""
        return await self._driver.call(self._steps.add(keys))

    async def touch(self, *keys: Value) -> int:
        """Mark keys as used without reading them; return how many exist."""
        return await self._driver.run(self._steps.touch(keys))

    async def usage(self) -> Usage:
        """Return how large the namespace is."""
        return await self._driver.call(self._steps.usage())

    async def recruited(self) -> Duty:
        """Evict what is over budget, or repair a part of the index."""
        return await self._driver.run(self._steps.enforce())


@dataclass(frozen=True, slots=True)
class _KeyInspection:
    """A key as it was when it was inspected; a size of -1 if it was gone."""

    key: Value
    coldness: int
    size: int


class _NamespaceBudgetSteps:
    """The steps of both classes: what they ask of Redis."""

    def __init__(
        self,
        key: str,
        prefix: str,
        most_keys: int | None,
        most_bytes: int | None,
        batch: int,
    ) -> None:
        if not isinstance(prefix, str) or not prefix or not is_text(prefix):
            raise ConfigurationError(
                f"prefix must be a string such as 'cache:', not {prefix!r}"
            )
        if most_keys is None and most_bytes is None:
            raise ConfigurationError(
                "NamespaceBudget needs a budget: give most_keys=, most_bytes= or both"
            )
        checked_key(key)
        parts = ("index", "sizes", "state", "lease")
        self._keys = {part: beside(key, part) for part in parts}
        self._lease = self._keys["lease"]
        scan = beside(key, "scan")
        # The keys of the job may have the prefix too, and must not be evicted.
        ours = (*self._keys.values(), scan)
        self._ours = {*ours, *(name.encode() for name in ours)}
        self._most = (
            -1 if most_keys is None else checked_whole(most_keys, "most_keys", 0),
            -1
            if most_bytes is None
            else checked_whole(most_bytes, "most_bytes", 0, _MOST_BYTES),
        )
        self._abandoned = AbandonedLeases()
        self._measure = int(most_bytes is not None)
        self._batch = checked_batch(batch)
        self._scan = SharedScan(scan, _GLOB.sub(r"\\\1", prefix) + "*", batch)

    def add(self, keys: Iterable[Value]) -> Call[int]:
        return call_script("budget_add", self._keys, int, keys=keys)

    def touch(self, keys: Iterable[Value]) -> Flow[int]:
        touched = 0
        for group in by_slot(keys, Nodes.parse((yield Nodes()))):
            touched += yield from ask(RedisCommand(("TOUCH", *group), int))
        return touched

    def usage(self) -> Call[Usage]:
        return call_script("budget_usage", self._keys, lambda flat: Usage(*flat))

    def enforce(self) -> Flow[Duty]:
        yield from self._abandoned.release_all()
        return (yield from self._abandoned.watching(self._lease, self._enforce))

    def _enforce(self, token: str) -> Flow[Duty]:
        most_keys, most_bytes = self._most
        call = call_script(
            "budget_turn",
            self._keys,
            list,
            most_keys=most_keys,
            most_bytes=most_bytes,
            sample=self._batch,
            token=token,
            lease_ms=_LEASE_MS,
        )
        verdict, asked, *drawn = yield from ask(call)
        if verdict == _BUSY:
            raise Conflict("another recruit is evicting keys of this namespace")
        if verdict == _CHECK:
            _, dropped, _ = yield from self._inspect(asked, drawn)
            return duty_of(dropped, more=dropped * 4 >= self._batch)
        if verdict != _OVER:
            return (yield from self._add_unknown())
        work = self._evict(asked, drawn)
        duty = yield from releasing_on_error(self._lease, token, work)
        yield from ask(release_leases((self._lease, token)))
        return duty

    def _evict(self, asked: int, drawn: list[Value]) -> Flow[Duty]:
        inspected, dropped, usage = yield from self._inspect(asked, drawn)
        victims = self._victims(inspected, usage)
        nodes = Nodes.parse((yield Nodes()))
        by_key = {one.key: one for one in victims}
        gone: list[Value] = []
        for group in by_slot(by_key, nodes):
            seen = tuple(by_key[key].coldness for key in group)
            verdicts = yield from ask(
                call_script("budget_evict", {"keys": group}, list, seen=seen)
            )
            gone += [
                key for key, evicted in zip(group, verdicts, strict=True) if evicted
            ]
        flat = [part for key in gone for part in (key, -1)]
        _, keys, size = yield from ask(self._update(asked, flat))
        removed = dropped + len(gone)
        more = removed > 0 and self._is_over_budget(keys, size)
        return duty_of(removed, more=more)

    def _inspect(
        self, asked: int, drawn: list[Value]
    ) -> Flow[tuple[list[_KeyInspection], int, Usage]]:
        """Inspect keys and update the index; return those that exist."""
        inspected: list[_KeyInspection] = []
        for group in by_slot(drawn, Nodes.parse((yield Nodes()))):
            measure, keys = self._measure, {"keys": group}
            flat = yield from ask(
                call_script("budget_inspect", keys, list, measure=measure)
            )
            inspected += map(_KeyInspection, group, flat[::2], flat[1::2])
        seen = [part for one in inspected for part in (one.key, one.size)]
        dropped, *left = yield from ask(self._update(asked, seen))
        return [one for one in inspected if one.size >= 0], dropped, Usage(*left)

    def _add_unknown(self) -> Flow[Duty]:
        """Add keys that their writers did not add."""
        page = yield from self._scan.page()
        keys = [key for key in page.keys if key not in self._ours]
        fresh: list[Value] = []
        if keys:
            asked, *fresh = yield from ask(
                call_script("budget_add_found", self._keys, list, keys=keys)
            )
        if fresh:
            # A key that was evicted after the page was read must not stay.
            yield from self._inspect(asked, fresh)
        yield from ask(self._scan.advance(page, {}))
        return duty_of(len(fresh), more=bool(fresh) and not page.ends_pass)

    def _victims(
        self, inspected: list[_KeyInspection], usage: Usage
    ) -> list[_KeyInspection]:
        """Choose the coldest, no more than the budget requires."""
        victims: list[_KeyInspection] = []
        keys, size = usage.keys, usage.bytes
        most = max(1, len(inspected) // _SAMPLES_PER_EVICTION)
        for one in sorted(inspected, key=lambda one: one.coldness, reverse=True)[:most]:
            if not self._is_over_budget(keys, size):
                break
            victims.append(one)
            keys, size = keys - 1, size - one.size
        return victims

    def _is_over_budget(self, keys: int, size: int) -> bool:
        most_keys, most_bytes = self._most
        return 0 <= most_keys < keys or 0 <= most_bytes < size

    def _update(self, asked: int, seen: list[Any]) -> Call[list[int]]:
        return call_script(
            "budget_update",
            self._keys,
            list,
            asked=asked,
            measure=self._measure,
            seen=seen,
        )
