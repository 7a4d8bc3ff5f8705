"""Removes members of an index whose key no longer exists.

The index is a set or a sorted set; `key_of(member)` names the key of a member, and is
the member itself by default. A slice draws *batch* members at random and removes
those whose key is missing; it asks for more while a quarter of them or more are. Newest
servers: an index of Redis Search (Redis >= 8) follows its keys.

Writers must write the key first and the index second, or both in one MULTI: a member
whose key is not written yet looks like one whose key is gone. Then

- on a single server, and for keys in the index's slot of a Cluster (one hash tag),
  check and removal are one step: a member that is added again is never lost;
- for keys in other slots of a Cluster they cannot be. Missing keys are looked up
  before and after the removal, and a member whose key has appeared is restored; in
  between, for one round trip, readers do not see it. It stays lost only if it was added
  again between check and removal and the recruit then dies before it restores it.

Members and keys are text; a member that is not UTF-8 is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

from workstealing._checks import checked_batch
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.errors import RedisError
from workstealing.jobs.job_keys import Value, checked_key, mapping_of, slot_of
from workstealing.jobs.redis_job import (
    AsyncRedisJob,
    RedisJob,
    call_script,
    duty_of,
    hook_errors,
)
from workstealing.queue.steps import (
    SINGLE,
    Call,
    Flow,
    Nodes,
    RedisCommand,
    ask,
)
from workstealing.recruiting.job import Duty

__all__ = ("AsyncIndexRepair", "IndexRepair")

KeyOf: TypeAlias = Callable[[str], str]


class IndexRepair(RedisJob):
    """Removes members without a key from an index."""

    def __init__(
        self,
        redis: Client | str | None,
        index: str,
        *,
        key_of: KeyOf = str,
        batch: int = 20,
    ) -> None:
        super().__init__(redis)
        self._steps = _IndexRepairSteps(index, key_of, batch)

    def recruited(self) -> Duty:
        """Check *batch* members, and remove those whose key is missing."""
        return self._driver.run(self._steps.repair())


class AsyncIndexRepair(AsyncRedisJob):
    """`IndexRepair` for asyncio."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        index: str,
        *,
        key_of: KeyOf = str,
        batch: int = 20,
    ) -> None:
        super().__init__(redis)
        self._steps = _IndexRepairSteps(index, key_of, batch)

    async def recruited(self) -> Duty:
        """Check *batch* members, and remove those whose key is missing."""
        return await self._driver.run(self._steps.repair())


class _IndexRepairSteps:
    """The steps of both classes: what they ask of Redis."""

    def __init__(self, index: str, key_of: KeyOf, batch: int) -> None:
        self._index = checked_key(index)
        self._key_of = key_of
        self._batch = checked_batch(batch)

    def repair(self) -> Flow[Duty]:
        scores = yield from ask(
            self._call("index_sample", mapping_of, most=self._batch)
        )
        with hook_errors(self._key_of):
            keys = {name: self._key_of(text) for name, text in _readable(scores)}
        together = yield from self._together(keys)
        apart = {member: key for member, key in keys.items() if member not in together}
        removed = 0
        if together:
            touched = {"index": self._index, "keys": together.values()}
            removed += yield from ask(
                call_script("index_repair", touched, int, members=together)
            )
        if apart:
            removed += yield from self._repair_apart(apart, scores)
        return duty_of(removed, more=removed * 4 >= len(scores) > 0)

    def _together(self, keys: dict[Value, str]) -> Flow[dict[Value, str]]:
        """Return the members whose keys one script may touch with the index."""
        if (yield Nodes()) == SINGLE:
            return keys
        own = slot_of(self._index)
        return {member: key for member, key in keys.items() if slot_of(key) == own}

    def _repair_apart(
        self, keys: dict[Value, str], scores: dict[Value, Value]
    ) -> Flow[int]:
        gone: dict[Value, Value] = {}
        for member, key in keys.items():
            if not (yield from ask(_exists(key))):
                gone[member] = scores[member]
        if not gone:
            return 0
        yield from ask(self._call("index_remove", int, members=_flat(gone)))
        # All of them: the reply may be that of a repeated call.
        back = dict(gone)
        try:
            for member in gone:
                if not (yield from ask(_exists(keys[member]))):
                    del back[member]
        except RedisError:
            # The rest is unknown: a member too many is the lesser harm.
            yield from self._restore(back)
            raise
        yield from self._restore(back)
        return len(gone) - len(back)

    def _restore(self, scores: dict[Value, Value]) -> Flow[None]:
        if scores:
            yield from ask(self._call("index_restore", int, members=_flat(scores)))

    def _call(
        self, name: str, parse: Callable[[Any], Any], **arguments: Any
    ) -> Call[Any]:
        return call_script(name, {"index": self._index}, parse, **arguments)


def _exists(key: str) -> RedisCommand[bool]:
    return RedisCommand(("EXISTS", key), parse=bool)


def _flat(scores: dict[Value, Value]) -> list[Value]:
    return [part for pair in scores.items() for part in pair]


def _readable(members: Iterable[Value]) -> Iterator[tuple[Value, str]]:
    for member in members:
        with suppress(UnicodeDecodeError):
            yield member, member.decode() if isinstance(member, bytes) else member
