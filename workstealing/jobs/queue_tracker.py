"""A set in Redis that follows a table elsewhere.

For ids that many processes need quickly while the truth is in a database: open orders,
live accounts, rows that wait for something. Slices alternate: one reads the next page
of the table and adds its ids, the next asks the table about the ids that were checked
the longest ago, and removes those that are gone. After a pass of both, the set equals
the table; `add` and `remove` change single ids at once. Newest servers: none follows a
database.

- An id that was added after the table was asked is never removed by that answer, so
  an id that is re-added meanwhile is not lost. Write the row first, then `add`.
- A new row may be missing until its page is read, and a deleted row may stay until it
  is checked. A page that was read before a row was deleted may add its id once more.

`next_rows(after, count)` returns at most *count* ids that follow *after* in a stable
order (None: from the start); a shorter list means the end, and the next page is the
first. `still_there(ids)` returns those that the table has. Both get ids as
text, and may return text or numbers. A wrong answer makes the set wrong. An id that is
not UTF-8 cannot be one of the table, and is removed without asking.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from workstealing._checks import checked_batch, checked_text, is_text
from workstealing.drivers.async_driver import AsyncClient
from workstealing.drivers.sync_driver import Client
from workstealing.jobs.job_keys import (
    beside,
    checked_key,
    lossless_text,
    lossless_texts,
    sendable,
)
from workstealing.jobs.redis_job import (
    AsyncRedisJob,
    RedisJob,
    call_hook,
    call_script,
    duty_of,
)
from workstealing.queue.steps import Call, Flow, RedisCommand, ask
from workstealing.recruiting.job import Duty

__all__ = ("AsyncQueueTracker", "QueueTracker")

Id: TypeAlias = str | int
NextRows: TypeAlias = Callable[[str | None, int], Iterable[Id]]
StillThere: TypeAlias = Callable[[list[str]], Iterable[Id]]
AsyncNextRows: TypeAlias = Callable[[str | None, int], Awaitable[Iterable[Id]]]
AsyncStillThere: TypeAlias = Callable[[list[str]], Awaitable[Iterable[Id]]]


class QueueTracker(RedisJob):
    """A set of ids that follows a table."""

    def __init__(
        self,
        redis: Client | str | None,
        key: str,
        *,
        next_rows: NextRows,
        still_there: StillThere,
        batch: int = 25,
    ) -> None:
        super().__init__(redis)
        self._steps = _QueueTrackerSteps(key, next_rows, still_there, batch)

    def add(self, *ids: Id) -> int:
        """Add ids whose rows are written; return how many are new."""
        return self._driver.call(self._steps.add(ids))

    def remove(self, *ids: Id) -> int:
        """Remove ids; return how many there were."""
        return self._driver.call(self._steps.remove(ids))

    def contains(self, identifier: Id) -> bool:
        """Return whether an id is in the set."""
        return self._driver.call(self._steps.contains(identifier))

    def ids(self) -> set[str]:
        """Return all ids; the cost grows with their number."""
        return self._driver.call(self._steps.ids())

    def count(self) -> int:
        """Return how many ids there are."""
        return self._driver.call(self._steps.count())

    def recruited(self) -> Duty:
        """Compare up to *batch* ids with the table."""
        return self._driver.run(self._steps.follow())


class AsyncQueueTracker(AsyncRedisJob):
    """`QueueTracker` for asyncio."""

    def __init__(
        self,
        redis: AsyncClient | str | None,
        key: str,
        *,
        next_rows: NextRows | AsyncNextRows,
        still_there: StillThere | AsyncStillThere,
        batch: int = 25,
    ) -> None:
        super().__init__(redis)
        self._steps = _QueueTrackerSteps(key, next_rows, still_there, batch)

    async def add(self, *ids: Id) -> int:
        """Add ids whose rows are written; return how many are new."""
        return await self._driver.call(self._steps.add(ids))

    async def remove(self, *ids: Id) -> int:
        """Remove ids; return how many there were."""
        return await self._driver.call(self._steps.remove(ids))

    async def contains(self, identifier: Id) -> bool:
        """Return whether an id is in the set."""
        return await self._driver.call(self._steps.contains(identifier))

    async def ids(self) -> set[str]:
        """Return all ids; the cost grows with their number."""
        return await self._driver.call(self._steps.ids())

    async def count(self) -> int:
        """Return how many ids there are."""
        return await self._driver.call(self._steps.count())

    async def recruited(self) -> Duty:
        """Compare up to *batch* ids with the table."""
        return await self._driver.run(self._steps.follow())


class _QueueTrackerSteps:
    """The steps of both classes: what they ask of Redis and of the table."""

    def __init__(
        self,
        key: str,
        next_rows: Callable[..., Any],
        still_there: Callable[..., Any],
        batch: int,
    ) -> None:
        self._key = checked_key(key)
        self._keys = {"ids": key, "state": beside(key, "tracking")}
        self._next_rows = next_rows
        self._still_there = still_there
        self._batch = checked_batch(batch)

    def add(self, ids: Iterable[Id]) -> Call[int]:
        return self._call("tracker_add", int, added=_checked_ids(ids))

    def remove(self, ids: Iterable[Id]) -> Call[int]:
        return self._call("tracker_remove", int, removed=_checked_ids(ids))

    def contains(self, identifier: Id) -> RedisCommand[bool]:
        parts = ("ZSCORE", self._key, _checked(identifier))
        return RedisCommand(parts, lambda score: score is not None)

    def ids(self) -> RedisCommand[set[str]]:
        return RedisCommand(
            ("ZRANGE", self._key, 0, -1), lambda ids: set(lossless_texts(ids))
        )

    def count(self) -> RedisCommand[int]:
        return RedisCommand(("ZCARD", self._key), int)

    def follow(self) -> Flow[Duty]:
        asked, after, *oldest = yield from ask(
            self._call("tracker_turn", list, most=self._batch)
        )
        if oldest:
            changed, more = yield from self._remove_gone(asked, lossless_texts(oldest))
        else:
            changed, more = yield from self._add_next(lossless_text(after))
        # While either kind has a backlog, slices continue to alternate.
        return duty_of(changed, more=bool(more))

    def _add_next(self, after: str) -> Flow[list[int]]:
        page = (after or None, self._batch)
        rows = yield from call_hook(self._next_rows, *page, read=_checked_ids)
        ids = rows[: self._batch]
        cursor = ids[-1] if len(ids) == self._batch else ""
        call = self._call("tracker_follow", list, after=after, cursor=cursor, rows=ids)
        changed: list[int] = yield from ask(call)
        return changed

    def _remove_gone(self, asked: int, ids: list[str]) -> Flow[list[int]]:
        there: set[str] = set()
        if known := [identifier for identifier in ids if is_text(identifier)]:
            there.update(
                (yield from call_hook(self._still_there, known, read=lossless_texts))
            )
        gone = [sendable(identifier) for identifier in ids if identifier not in there]
        kept = [identifier for identifier in ids if identifier in there]
        call = self._call(
            "tracker_forget",
            list,
            asked=asked,
            most=self._batch,
            gone=len(gone),
            asked_ids=(*gone, *kept),
        )
        changed: list[int] = yield from ask(call)
        return changed

    def _call(
        self, name: str, parse: Callable[[Any], Any], **arguments: Any
    ) -> Call[Any]:
        return call_script(name, self._keys, parse, is_raw=True, **arguments)


def _checked_ids(ids: Iterable[Id]) -> list[str]:
    return [_checked(identifier) for identifier in ids]


def _checked(identifier: Id) -> str:
    return checked_text(lossless_text(identifier))
