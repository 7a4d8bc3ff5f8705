"""Removes members of an index whose key no longer exists.

The index is a set or a sorted set; `key_of(member)` names the key of a member, and is
the member itself if not given. A slice draws *batch* members by chance and removes
those whose key is missing; it asks for more while a quarter of them are. Newest
servers: an index of Redis Search (Redis >= 8) follows its keys by itself.

Writers must write the key first and the index second, or both in one MULTI: a member
whose key is still to come looks like one whose key is gone. Then

- on a single server, and for keys in the index's slot of a Cluster (one hash tag),
  check and removal are one step: a member that is added again is never lost;
- for keys in other slots of a Cluster they cannot be. Missing keys are looked for
  before and after the removal, and a member whose key has come to be is put back; in
  between, for a round trip, readers miss it. It stays lost only if it was added again
  between check and removal and the recruit then dies before it puts it back.

Members and keys are text; a member that is not UTF-8 is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.errors import RedisError
from workstealing.jobs.checking import checked_batch
from workstealing.jobs.face import AsyncRedisJob, RedisJob
from workstealing.jobs.naming import checked_key
from workstealing.jobs.slots import slot_of
from workstealing.jobs.telling import blaming
from workstealing.jobs.wording import Value, pairs
from workstealing.queue.call import (
    SINGLE,
    Argument,
    Call,
    Command,
    Flow,
    Nodes,
    ask,
)
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncIndexRepair", "IndexRepair")

KeyOf: TypeAlias = Callable[[str], str]


class IndexRepair(RedisJob):
    """Keeps an index free of members without a key; the sync face."""

    def __init__(
        self,
        redis: Client | str | None,
        index: str,
        *,
        key_of: KeyOf = str,
        batch: int = 20,
    ) -> None:
        super().__init__(redis)
        self._body = _Body(index, key_of, batch)

    def recruited(self) -> Duty:
        """Look at *batch* members, and remove those whose key is missing."""
        return self._driver.run(self._body.repair())


class AsyncIndexRepair(AsyncRedisJob):
    """Keeps an index free of members without a key; the asyncio face."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        index: str,
        *,
        key_of: KeyOf = str,
        batch: int = 20,
    ) -> None:
        super().__init__(redis)
        self._body = _Body(index, key_of, batch)

    async def recruited(self) -> Duty:
        """Look at *batch* members, and remove those whose key is missing."""
        return await self._driver.run(self._body.repair())


class _Body:
    """What both faces ask of Redis."""

    def __init__(self, index: str, key_of: KeyOf, batch: int) -> None:
        self._index = checked_key(index)
        self._key_of = key_of
        self._batch = checked_batch(batch)

    def repair(self) -> Flow[Duty]:
        scores = yield from ask(self._call("index_sample", pairs, self._batch))
        with blaming(self._key_of):
            keys = {name: self._key_of(text) for name, text in _readable(scores)}
        together = yield from self._together(keys)
        apart = {member: key for member, key in keys.items() if member not in together}
        removed = 0
        if together:
            script = load_script(__package__, "index_repair")
            declared = (self._index, *together.values())
            removed += yield from ask(Call(script, declared, tuple(together), int))
        if apart:
            removed += yield from self._repair_apart(apart, scores)
        if removed * 4 >= len(scores) > 0:
            return Duty.MORE
        return Duty.RECRUITED if removed else Duty.DISMISSED

    def _together(self, keys: dict[Value, str]) -> Flow[dict[Value, str]]:
        """Pick the members whose keys one script may touch with the index."""
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
        yield from ask(self._call("index_remove", int, *_flat(gone)))
        # Not only what the reply could name: it may be that of a repeated call.
        back = dict(gone)
        try:
            for member in gone:
                if not (yield from ask(_exists(keys[member]))):
                    del back[member]
        except RedisError:
            # Nobody knows about the rest: a member too many is the lesser harm.
            yield from self._restore(back)
            raise
        yield from self._restore(back)
        return len(gone) - len(back)

    def _restore(self, scores: dict[Value, Value]) -> Flow[None]:
        if scores:
            yield from ask(self._call("index_restore", int, *_flat(scores)))

    def _call(
        self, script: str, parse: Callable[[Any], Any], *arguments: Argument
    ) -> Call[Any]:
        keys = (self._index,)
        return Call(load_script(__package__, script), keys, arguments, parse)


def _exists(key: str) -> Command[bool]:
    return Command(("EXISTS", key), parse=bool)


def _flat(scores: dict[Value, Value]) -> list[Value]:
    return [part for pair in scores.items() for part in pair]


def _readable(members: Iterable[Value]) -> Iterator[tuple[Value, str]]:
    for member in members:
        with suppress(UnicodeDecodeError):
            yield member, member.decode() if isinstance(member, bytes) else member
