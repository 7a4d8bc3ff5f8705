"""Holds the keys of one prefix under a budget of keys or bytes.

Say `add(key)` after writing a key. When the index of keys is over budget, a slice draws
*batch* of them by chance and evicts the coldest fifth, or fewer if that is enough: the
longest idle (`OBJECT IDLETIME`) or, under an LFU policy, the least frequently used
(`OBJECT FREQ`). Slices that are not over budget heal the index by turns: members whose
key is gone are dropped, and keys that nobody added are found by a slow `SCAN`. Newest
servers: `maxmemory` evicts per server, never per prefix; if all keys of the server may
be evicted, use that.

What is guaranteed:

- Nothing is evicted while the index is within budget, and one recruit evicts at a time
  (others raise `Conflict`). A recruit that is slower than its lease of 10 seconds may
  evict together with the next one: then a batch too many.
- A key that was used since it was looked at is spared, as exactly as the server knows:
  idle time is in whole seconds.
- A key is removed first and its index entry second, so a crash in between leaves an
  entry without a key, which is dropped later. A key that is written and added again
  meanwhile keeps its entry: entries are removed only if they are older than the look.

What is not: the budget is exceeded by what is written between slices, and by keys that
were not added until the scan finds them. Bytes are an estimate until every key was
looked at once: the mean of those measured (`MEMORY USAGE`), times all.

In a Cluster the keys may be in any slot; the index is in one. A slice then costs about
a round trip for each key that it looks at: choose a smaller *batch*.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.errors import ConfigurationError, Conflict
from workstealing.jobs.checking import checked_batch
from workstealing.jobs.face import AsyncRedisJob, RedisJob
from workstealing.jobs.leasing import Leases, guarded, new_token, release
from workstealing.jobs.naming import beside, checked_key
from workstealing.jobs.scanning import SharedScan
from workstealing.jobs.slots import declared, together
from workstealing.jobs.wording import Value, is_text
from workstealing.queue.call import Argument, Call, Command, Flow, Nodes, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncNamespaceBudget", "NamespaceBudget", "Usage")

_LEASE_MS = 10_000
_SAMPLES_PER_EVICTION = 5
_OVER, _CHECK, _BUSY = 2, 1, -1
_GLOB = re.compile(r"([*?\[\]\\])")


@dataclass(frozen=True, slots=True)
class Usage:
    """How large a namespace is."""

    keys: int
    """Keys in the index."""
    bytes: int
    """What they take, by estimate; 0 where there is no budget of bytes."""


class NamespaceBudget(RedisJob):
    """Evicts keys of a prefix that is over its budget; the sync face.

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
        self._body = _Body(key, prefix, most_keys, most_bytes, batch)

    def add(self, *keys: Value) -> int:
        """Enter keys that were just written; return how many are new."""
        return self._driver.call(self._body.add(keys))

    def touch(self, *keys: Value) -> int:
        """Count keys as used without reading them; return how many there are."""
        return self._driver.run(self._body.touch(keys))

    def usage(self) -> Usage:
        """Tell how large the namespace is."""
        return self._driver.call(self._body.usage())

    def recruited(self) -> Duty:
        """Evict what is over budget, or heal a part of the index."""
        return self._driver.run(self._body.hold())


class AsyncNamespaceBudget(AsyncRedisJob):
    """Evicts keys of a prefix that is over its budget; the asyncio face.

    *key* is where the index is kept. Give *most_keys*, *most_bytes*, or both.
    """

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
        self._body = _Body(key, prefix, most_keys, most_bytes, batch)

    async def add(self, *keys: Value) -> int:
        """Enter keys that were just written; return how many are new."""
        return await self._driver.call(self._body.add(keys))

    async def touch(self, *keys: Value) -> int:
        """Count keys as used without reading them; return how many there are."""
        return await self._driver.run(self._body.touch(keys))

    async def usage(self) -> Usage:
        """Tell how large the namespace is."""
        return await self._driver.call(self._body.usage())

    async def recruited(self) -> Duty:
        """Evict what is over budget, or heal a part of the index."""
        return await self._driver.run(self._body.hold())


@dataclass(frozen=True, slots=True)
class _Look:
    """One key as it was when we looked; a size of -1 where it is gone."""

    key: Value
    coldness: int
    size: int


class _Body:
    """What both faces ask of Redis."""

    def __init__(
        self,
        key: str,
        prefix: str,
        most_keys: int | None,
        most_bytes: int | None,
        batch: int,
    ) -> None:
        if not isinstance(prefix, str) or not prefix or not is_text(prefix):
            raise ConfigurationError(f"a prefix is like 'cache:', not {prefix!r}")
        budgets = [most for most in (most_keys, most_bytes) if most is not None]
        if not budgets or min(budgets) < 0:
            raise ConfigurationError("give most_keys or most_bytes, 0 or more")
        self._index = (
            beside(checked_key(key), "index"),
            beside(key, "sizes"),
            beside(key, "state"),
        )
        self._lease = beside(key, "lease")
        scan = beside(key, "scan")
        # Our own keys may have the prefix too, and must not evict themselves.
        ours = (*self._index, self._lease, scan)
        self._ours = {*ours, *(name.encode() for name in ours)}
        self._most = (
            -1 if most_keys is None else most_keys,
            -1 if most_bytes is None else most_bytes,
        )
        self._leases = Leases()
        self._measure = int(most_bytes is not None)
        self._batch = checked_batch(batch)
        self._scan = SharedScan(scan, _GLOB.sub(r"\\\1", prefix) + "*", batch)

    def add(self, keys: Iterable[Value]) -> Call[int]:
        index, _, state = self._index
        return self._call("budget_add", int, (index, state), *keys)

    def touch(self, keys: Iterable[Value]) -> Flow[int]:
        touched = 0
        for group in together(keys, Nodes.parse((yield Nodes()))):
            touched += yield from ask(Command(("TOUCH", *group), int))
        return touched

    def usage(self) -> Call[Usage]:
        return self._call("budget_usage", lambda flat: Usage(*flat), self._index)

    def hold(self) -> Flow[Duty]:
        yield from self._leases.give_back()
        token = new_token()
        return (yield from self._leases.noting(self._lease, token, self._hold(token)))

    def _hold(self, token: str) -> Flow[Duty]:
        limits = (*self._most, self._batch, token, _LEASE_MS)
        keys = (*self._index, self._lease)
        verdict, asked, *drawn = yield from ask(
            self._call("budget_turn", list, keys, *limits)
        )
        if verdict == _BUSY:
            raise Conflict("another recruit evicts keys of this namespace")
        if verdict == _CHECK:
            _, dropped, _ = yield from self._check(asked, drawn)
            return _duty(dropped, more=dropped * 4 >= self._batch)
        if verdict != _OVER:
            return (yield from self._find())
        duty = yield from guarded(self._lease, token, self._evict(asked, drawn))
        yield from ask(release((self._lease, token)))
        return duty

    def _evict(self, asked: int, drawn: list[Value]) -> Flow[Duty]:
        looks, dropped, usage = yield from self._check(asked, drawn)
        victims = self._victims(looks, usage)
        nodes = Nodes.parse((yield Nodes()))
        by_key = {look.key: look for look in victims}
        gone: list[Value] = []
        for group in together(by_key, nodes):
            seen = tuple(by_key[key].coldness for key in group)
            verdicts = yield from ask(
                self._call("budget_evict", list, declared(group), *seen)
            )
            gone += [
                key for key, evicted in zip(group, verdicts, strict=True) if evicted
            ]
        flat = [part for key in gone for part in (key, -1)]
        _, keys, size = yield from ask(self._note(asked, flat))
        return _duty(dropped + len(gone), more=self._is_over(keys, size))

    def _check(
        self, asked: int, drawn: list[Value]
    ) -> Flow[tuple[list[_Look], int, Usage]]:
        """Look at keys and bring the index up to date; return the living."""
        looks: list[_Look] = []
        for group in together(drawn, Nodes.parse((yield Nodes()))):
            flat = yield from ask(
                self._call("budget_look", list, declared(group), self._measure)
            )
            looks += map(_Look, group, flat[::2], flat[1::2])
        seen = [part for look in looks for part in (look.key, look.size)]
        dropped, *left = yield from ask(self._note(asked, seen))
        return [look for look in looks if look.size >= 0], dropped, Usage(*left)

    def _find(self) -> Flow[Duty]:
        """Enter keys that nobody told us of."""
        page = yield from self._scan.page()
        keys = [key for key in page.keys if key not in self._ours]
        fresh: list[Value] = []
        if keys:
            index, _, state = self._index
            found = self._call("budget_find", list, (index, state), *keys)
            asked, *fresh = yield from ask(found)
        if fresh:
            # One that was evicted after the page was read must not stay.
            yield from self._check(asked, fresh)
        yield from ask(self._scan.advance(page, {}))
        return _duty(len(fresh), more=not page.ends_pass)

    def _victims(self, looks: list[_Look], usage: Usage) -> list[_Look]:
        """Choose the coldest, no more than the budget asks for."""
        victims: list[_Look] = []
        keys, size = usage.keys, usage.bytes
        most = max(1, len(looks) // _SAMPLES_PER_EVICTION)
        for look in sorted(looks, key=lambda look: look.coldness, reverse=True)[:most]:
            if not self._is_over(keys, size):
                break
            victims.append(look)
            keys, size = keys - 1, size - look.size
        return victims

    def _is_over(self, keys: int, size: int) -> bool:
        most_keys, most_bytes = self._most
        return 0 <= most_keys < keys or 0 <= most_bytes < size

    def _note(self, asked: int, seen: list[Any]) -> Call[list[int]]:
        return self._call("budget_note", list, self._index, asked, self._measure, *seen)

    def _call(
        self,
        script: str,
        parse: Callable[[Any], Any],
        keys: tuple[str, ...],
        *arguments: Argument,
    ) -> Call[Any]:
        return Call(load_script(__package__, script), keys, arguments, parse)


def _duty(done: int, *, more: bool) -> Duty:
    if done and more:
        return Duty.MORE
    return Duty.RECRUITED if done else Duty.DISMISSED
