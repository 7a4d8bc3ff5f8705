"""What the dashboard shows, and what it can do: all through inspectors and queues.

Everything is bounded: how many queues are looked at, how many are remembered, and how
many looks go on at once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from workstealing.client.queue import AsyncTaskQueue
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.drivers.aio import AsyncClient
from workstealing.errors import RedisError, RedisUnavailable
from workstealing.inspecting.inspector import AsyncInspector
from workstealing.inspecting.rates import RateMeter, Rates
from workstealing.inspecting.values import Entry, Explanation, Stat, TaskView
from workstealing.queue.replies import shown

__all__ = ("ACTIONS", "Action", "Board", "Look", "Overview", "Unreadable")

Action = Literal["replay", "delete", "cancel"]
ACTIONS: tuple[Action, ...] = ("replay", "delete", "cancel")

_SHOWN = 50
_REMEMBERED = 200
_AT_ONCE = 8
_LOOK_AROUND_SECONDS = 15.0
_HISTORY = 60


@dataclass(frozen=True, slots=True)
class Look:
    """A queue at one moment, and how fast it went until then."""

    stat: Stat
    rates: Rates | None
    history: tuple[float, ...]
    """Tasks done per second, at the last looks."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A queue that has something in its keys that is none of ours."""

    queue: str
    run: str
    problem: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The queues of a server."""

    looks: tuple[Look, ...]
    unreadable: tuple[Unreadable, ...]
    more: int
    """Queues that are there and were not looked at."""
    is_all: bool
    """False if the server may have queues that nobody found."""


@dataclass(frozen=True, slots=True)
class _Desk:
    queue: AsyncTaskQueue
    inspector: AsyncInspector
    meter: RateMeter = field(default_factory=RateMeter)
    history: deque[float] = field(default_factory=lambda: deque(maxlen=_HISTORY))


class Board:
    """Looks at the queues of one server.

    Args:
        client: of that server.
        queues: are shown first, with settings of their own.
        clock: where time comes from.
    """

    def __init__(
        self,
        client: AsyncClient,
        queues: Iterable[AsyncTaskQueue] = (),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._clock = clock
        self._given = {(queue.name, queue.run): queue for queue in queues}
        self._desks: OrderedDict[tuple[str, str], _Desk] = OrderedDict()
        self._found: tuple[tuple[str, str], ...] = ()
        self._found_all = True
        self._looked_around_at: float | None = None

    async def overview(self) -> Overview:
        """Look at the queues that were named, and at those that were found."""
        await self._look_around()
        names = tuple(dict.fromkeys((*self._given, *self._found)))
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def one(name: str, run: str) -> Look | Unreadable:
            async with at_once:
                try:
                    return await self.look(name, run)
                except RedisUnavailable:
                    raise
                # One queue must not hide the others, whatever is in its keys.
                except Exception as error:  # noqa: BLE001
                    return Unreadable(name, run, shown(error))

        seen = await asyncio.gather(*(one(*name) for name in names[:_SHOWN]))
        return Overview(
            tuple(look for look in seen if isinstance(look, Look)),
            tuple(queue for queue in seen if isinstance(queue, Unreadable)),
            max(0, len(names) - _SHOWN),
            self._found_all,
        )

    async def look(self, name: str, run: str) -> Look:
        """Look at one queue."""
        desk = self._desk(name, run)
        stat = await desk.inspector.stat()
        rates = desk.meter.note(stat)
        if rates is not None:
            desk.history.append(rates.done)
        return Look(stat, rates, tuple(desk.history))

    async def entries(
        self, name: str, run: str, place: str, limit: int
    ) -> tuple[Entry, ...]:
        """List a place of a queue."""
        return await self._desk(name, run).inspector.ls(place, limit)

    async def task(
        self, name: str, run: str, task_id: str
    ) -> tuple[TaskView, Explanation]:
        """Show a task."""
        inspector = self._desk(name, run).inspector
        return await inspector.cat(task_id), await inspector.why(task_id)

    async def act(self, action: Action, name: str, run: str, task_id: str) -> str:
        """Do something to a task; return a word for what came of it."""
        queue = self._desk(name, run).queue
        if action == "cancel":
            return await queue.handle(task_id).cancel()
        if action == "replay":
            return "replayed" if await queue.replay(task_id) else "not-dead"
        return "deleted" if await queue.drop(task_id) else "not-dead"

    async def close(self) -> None:
        """Let go of the server."""
        await self._client.aclose()

    def _desk(self, name: str, run: str) -> _Desk:
        key = (name, run)
        desk = self._desks.get(key)
        if desk is None:
            queue = self._given.get(key)
            if queue is None:
                queue = AsyncTaskQueue(name, self._client, run=run)
            desk = self._desks[key] = _Desk(queue, AsyncInspector(queue))
        self._desks.move_to_end(key)
        if len(self._desks) > _REMEMBERED:
            self._desks.popitem(last=False)
        return desk

    async def _look_around(self) -> None:
        now, before = self._clock.monotonic(), self._looked_around_at
        if before is not None and now - before < _LOOK_AROUND_SECONDS:
            return
        inspector = AsyncInspector(AsyncTaskQueue("any", self._client))
        try:
            found = await inspector.queues()
            self._found, self._found_all = found.names, found.is_all
        except RedisUnavailable:
            raise
        except RedisError:
            # A server may forbid SCAN.
            self._found, self._found_all = (), False
        self._looked_around_at = now
