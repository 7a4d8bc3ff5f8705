"""The one who looks at a queue, and changes nothing.

Everything is bounded: a list has a limit, and no hash of tasks is read as a whole. So
looking costs a queue of a million tasks no more than one of ten.
"""

from __future__ import annotations

from typing import Protocol

from workstealing.drivers.aio import AsyncDriver
from workstealing.drivers.sync import Driver
from workstealing.drivers.target import target_of
from workstealing.inspecting.counting import count
from workstealing.inspecting.explaining import explain
from workstealing.inspecting.folders import tree
from workstealing.inspecting.listing import entries
from workstealing.inspecting.roaming import queues
from workstealing.inspecting.showing import show
from workstealing.inspecting.values import (
    Entry,
    Explanation,
    Node,
    QueuesFound,
    Stat,
    TaskView,
)
from workstealing.queue.call import Flow
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.checking import checked_whole
from workstealing.tasks.naming import checked_id

__all__ = ("AsyncInspector", "Inspector")

_MOST = 1000


class _Inspected(Protocol):
    """What a queue must have to be looked at."""

    name: str
    run: str
    keys: QueueKeys
    settings: QueueSettings


class _Queue(_Inspected, Protocol):
    @property
    def driver(self) -> Driver: ...


class _AsyncQueue(_Inspected, Protocol):
    @property
    def driver(self) -> AsyncDriver: ...


class _Looking:
    """The flows of both faces, over one queue."""

    def __init__(self, queue: _Inspected) -> None:
        self._queue = queue

    def stat(self, client: object) -> Flow[Stat]:
        queue, server = self._queue, target_of(client)
        return count(queue.name, queue.run, server, queue.keys, queue.settings)

    def ls(self, where: str, limit: int) -> Flow[tuple[Entry, ...]]:
        return entries(self._queue.keys, where, _limit(limit))

    def cat(self, task_id: str) -> Flow[TaskView]:
        return show(self._queue.keys, self._queue.settings, checked_id(task_id))

    def tree(self, limit: int) -> Flow[Node]:
        queue = self._queue
        return tree(queue.name, queue.run, queue.keys, _limit(limit))

    def why(self, task_id: str) -> Flow[Explanation]:
        return explain(self._queue.keys, self._queue.settings, checked_id(task_id))


class Inspector:
    """Looks at one run of a queue."""

    def __init__(self, queue: _Queue) -> None:
        self._driver = queue.driver
        self._looking = _Looking(queue)

    def stat(self) -> Stat:
        """Count what is where, who is at it, and what was done."""
        return self._driver.run(self._looking.stat(self._driver.client))

    def ls(self, where: str = "inbox", limit: int = 20) -> tuple[Entry, ...]:
        """List a place: inbox, later, running, done, dead, parked or queues/WORKER."""
        return self._driver.run(self._looking.ls(where, limit))

    def cat(self, task_id: str) -> TaskView:
        """Show a task: envelope, outcome, traceback.

        Raises:
            TaskNotFound: there is no such task, or its outcome has expired.
        """
        return self._driver.run(self._looking.cat(task_id))

    def tree(self, limit: int = 10) -> Node:
        """Draw the queue as folders; *limit* is per folder."""
        return self._driver.run(self._looking.tree(limit))

    def why(self, task_id: str) -> Explanation:
        """Say where a task is, who holds it, and why it does not run."""
        return self._driver.run(self._looking.why(task_id))

    def queues(self) -> QueuesFound:
        """Name the queues of the server, as far as its first keys tell."""
        return self._driver.run(queues())


class AsyncInspector:
    """Looks at one run of a queue; the asyncio face of `Inspector`."""

    def __init__(self, queue: _AsyncQueue) -> None:
        self._driver = queue.driver
        self._looking = _Looking(queue)

    async def stat(self) -> Stat:
        """Count what is where, who is at it, and what was done."""
        return await self._driver.run(self._looking.stat(self._driver.client))

    async def ls(self, where: str = "inbox", limit: int = 20) -> tuple[Entry, ...]:
        """List a place: inbox, later, running, done, dead, parked or queues/WORKER."""
        return await self._driver.run(self._looking.ls(where, limit))

    async def cat(self, task_id: str) -> TaskView:
        """Show a task: envelope, outcome, traceback.

        Raises:
            TaskNotFound: there is no such task, or its outcome has expired.
        """
        return await self._driver.run(self._looking.cat(task_id))

    async def tree(self, limit: int = 10) -> Node:
        """Draw the queue as folders; *limit* is per folder."""
        return await self._driver.run(self._looking.tree(limit))

    async def why(self, task_id: str) -> Explanation:
        """Say where a task is, who holds it, and why it does not run."""
        return await self._driver.run(self._looking.why(task_id))

    async def queues(self) -> QueuesFound:
        """Name the queues of the server, as far as its first keys tell."""
        return await self._driver.run(queues())


def _limit(limit: int) -> int:
    return checked_whole(limit, "limit", 1, _MOST)
