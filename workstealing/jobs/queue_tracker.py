"""A set in Redis that follows a table elsewhere.

For ids that many processes need at hand while the truth is in a database: open orders,
live accounts, rows that wait for something. Slices work by turns: one reads the next
page of the table and adds its ids, one asks the table about the ids it has not been
asked about for longest and removes those that are gone. After a pass of both, the set
is the table; `add` and `remove` make single ids known at once. Newest servers: none
follows a database by itself.

- An id that was added after the table was asked is never removed by that answer, so
  an id that is re-added meanwhile is not lost. Write the row first, then `add`.
- A row may be missing until its page comes round, and a removed row may be there until
  it is asked about. A page read before a row was deleted may bring its id once more.

`next_rows(after, count)` returns at most *count* ids that follow *after* in a stable
order (None: from the start); a shorter list means the end, and the next page is the
first. `still_there(ids)` returns those that the table has. Both get and may return
text; numbers that they return become text. A reply that is wrong makes the set wrong.
An id that is not UTF-8 is none of the table's, and is removed unasked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from workstealing.drivers.aio import AsyncClient
from workstealing.drivers.sync import Client
from workstealing.jobs.checking import checked_batch
from workstealing.jobs.face import AsyncRedisJob, RedisJob
from workstealing.jobs.naming import beside, checked_key, checked_name
from workstealing.jobs.telling import consult
from workstealing.jobs.wording import is_text, sendable, text, texts
from workstealing.queue.call import Argument, Call, Command, Flow, ask
from workstealing.queue.scripts import load_script
from workstealing.recruiting.job import Duty

__all__ = ("AsyncQueueTracker", "QueueTracker")

Id: TypeAlias = str | int
NextRows: TypeAlias = Callable[[str | None, int], Iterable[Id]]
StillThere: TypeAlias = Callable[[list[str]], Iterable[Id]]
AsyncNextRows: TypeAlias = Callable[[str | None, int], Awaitable[Iterable[Id]]]
AsyncStillThere: TypeAlias = Callable[[list[str]], Awaitable[Iterable[Id]]]


class QueueTracker(RedisJob):
    """A set of ids that follows a table; the sync face."""

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
        self._body = _Body(key, next_rows, still_there, batch)

    def add(self, *ids: Id) -> int:
        """Add ids whose rows are written; return how many are new."""
        return self._driver.call(self._body.add(ids))

    def remove(self, *ids: Id) -> int:
        """Remove ids; return how many there were."""
        return self._driver.call(self._body.remove(ids))

    def contains(self, identifier: Id) -> bool:
        """Tell whether an id is in the set."""
        return self._driver.call(self._body.contains(identifier))

    def ids(self) -> set[str]:
        """Return all ids: as costly as the set is large."""
        return self._driver.call(self._body.ids())

    def count(self) -> int:
        """Return how many ids there are."""
        return self._driver.call(self._body.count())

    def recruited(self) -> Duty:
        """Compare up to *batch* ids with the table."""
        return self._driver.run(self._body.follow())


class AsyncQueueTracker(AsyncRedisJob):
    """A set of ids that follows a table; the asyncio face."""

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
        self._body = _Body(key, next_rows, still_there, batch)

    async def add(self, *ids: Id) -> int:
        """Add ids whose rows are written; return how many are new."""
        return await self._driver.call(self._body.add(ids))

    async def remove(self, *ids: Id) -> int:
        """Remove ids; return how many there were."""
        return await self._driver.call(self._body.remove(ids))

    async def contains(self, identifier: Id) -> bool:
        """Tell whether an id is in the set."""
        return await self._driver.call(self._body.contains(identifier))

    async def ids(self) -> set[str]:
        """Return all ids: as costly as the set is large."""
        return await self._driver.call(self._body.ids())

    async def count(self) -> int:
        """Return how many ids there are."""
        return await self._driver.call(self._body.count())

    async def recruited(self) -> Duty:
        """Compare up to *batch* ids with the table."""
        return await self._driver.run(self._body.follow())


class _Body:
    """What both faces ask of Redis and of the table."""

    def __init__(
        self,
        key: str,
        next_rows: Callable[..., Any],
        still_there: Callable[..., Any],
        batch: int,
    ) -> None:
        self._key = checked_key(key)
        self._keys = (key, beside(key, "tracking"))
        self._next_rows = next_rows
        self._still_there = still_there
        self._batch = checked_batch(batch)

    def add(self, ids: Iterable[Id]) -> Call[int]:
        return self._call("tracker_add", int, *_checked_ids(ids))

    def remove(self, ids: Iterable[Id]) -> Call[int]:
        return self._call("tracker_remove", int, *_checked_ids(ids))

    def contains(self, identifier: Id) -> Command[bool]:
        parts = ("ZSCORE", self._key, _checked(identifier))
        return Command(parts, lambda score: score is not None)

    def ids(self) -> Command[set[str]]:
        return Command(("ZRANGE", self._key, 0, -1), lambda ids: set(texts(ids)))

    def count(self) -> Command[int]:
        return Command(("ZCARD", self._key), int)

    def follow(self) -> Flow[Duty]:
        asked, after, *oldest = yield from ask(
            self._call("tracker_turn", list, self._batch)
        )
        if oldest:
            changed, more = yield from self._remove_gone(asked, texts(oldest))
        else:
            changed, more = yield from self._add_next(text(after))
        # While one of the two kinds has a backlog, slices go on by turns.
        if more:
            return Duty.MORE
        return Duty.RECRUITED if changed else Duty.DISMISSED

    def _add_next(self, after: str) -> Flow[list[int]]:
        page = (after or None, self._batch)
        rows = yield from consult(self._next_rows, *page, read=_checked_ids)
        ids = rows[: self._batch]
        cursor = ids[-1] if len(ids) == self._batch else ""
        return (yield from self._changed("tracker_follow", after, cursor, *ids))

    def _remove_gone(self, asked: int, ids: list[str]) -> Flow[list[int]]:
        there: set[str] = set()
        if known := [identifier for identifier in ids if is_text(identifier)]:
            there.update((yield from consult(self._still_there, known, read=texts)))
        gone = [sendable(identifier) for identifier in ids if identifier not in there]
        kept = [identifier for identifier in ids if identifier in there]
        about = (asked, self._batch, len(gone))
        return (yield from self._changed("tracker_forget", *about, *gone, *kept))

    def _changed(self, script: str, *arguments: Argument) -> Flow[list[int]]:
        changed: list[int] = yield from ask(self._call(script, list, *arguments))
        return changed

    def _call(
        self, script: str, parse: Callable[[Any], Any], *arguments: Argument
    ) -> Call[Any]:
        lua = load_script(__package__, script)
        return Call(lua, self._keys, arguments, parse, is_raw=True)


def _checked_ids(ids: Iterable[Id]) -> list[str]:
    return [_checked(identifier) for identifier in ids]


def _checked(identifier: Id) -> str:
    return checked_name(text(identifier))
