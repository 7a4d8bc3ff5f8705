"""Reads a queue without changing it; the sync and the asyncio inspector.

Everything is bounded: a list has a limit, and no hash of tasks is read as a whole. So
inspecting a queue of a million tasks costs no more than inspecting one of ten.
"""

from __future__ import annotations

from workstealing._checks import checked_id, checked_whole
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.inspecting.counting import read_stat
from workstealing.inspecting.listing import list_tasks
from workstealing.inspecting.queue_discovery import find_queues
from workstealing.inspecting.task_detail import explain_task, read_task
from workstealing.inspecting.tree import read_tree
from workstealing.inspecting.views import (
    Explanation,
    QueuesFound,
    QueueStat,
    TaskDetail,
    TaskRow,
    TreeNode,
)
from workstealing.queue.steps import Flow

__all__ = ("AsyncInspector", "Inspector")

_LARGEST_LIMIT = 1000


class Inspector:
    """Reads one run of a queue."""

    def __init__(self, queue: TaskQueue) -> None:
        self._parts = internals_of(queue)
        self._flows = _InspectionFlows(queue)

    def stat(self) -> QueueStat:
        """Count the tasks in each place, describe the workers, sum up what was done."""
        return self._parts.driver.run(self._flows.stat())

    def ls(self, where: str = "inbox", limit: int = 20) -> tuple[TaskRow, ...]:
        """List a place: inbox, later, running, done, dead, parked or queues/WORKER."""
        return self._parts.driver.run(self._flows.ls(where, limit))

    def cat(self, task_id: str) -> TaskDetail:
        """Return a task with its envelope, outcome and traceback.

        Raises:
            TaskNotFound: there is no such task, or its outcome has expired.
        """
        return self._parts.driver.run(self._flows.cat(task_id))

    def tree(self, limit: int = 10) -> TreeNode:
        """Return the queue as folders, with at most *limit* tasks in each."""
        return self._parts.driver.run(self._flows.tree(limit))

    def why(self, task_id: str) -> Explanation:
        """Say where a task is, which worker has it, and why it is not running."""
        return self._parts.driver.run(self._flows.why(task_id))

    def queues(self) -> QueuesFound:
        """Name the queues of the server, as far as the first keys show."""
        return self._parts.driver.run(find_queues())


class AsyncInspector:
    """Reads one run of a queue; `Inspector` for asyncio."""

    def __init__(self, queue: AsyncTaskQueue) -> None:
        self._parts = internals_of(queue)
        self._flows = _InspectionFlows(queue)

    async def stat(self) -> QueueStat:
        """Count the tasks in each place, describe the workers, sum up what was done."""
        return await self._parts.driver.run(self._flows.stat())

    async def ls(self, where: str = "inbox", limit: int = 20) -> tuple[TaskRow, ...]:
        """List a place: inbox, later, running, done, dead, parked or queues/WORKER."""
        return await self._parts.driver.run(self._flows.ls(where, limit))

    async def cat(self, task_id: str) -> TaskDetail:
        """Return a task with its envelope, outcome and traceback.

        Raises:
            TaskNotFound: there is no such task, or its outcome has expired.
        """
        return await self._parts.driver.run(self._flows.cat(task_id))

    async def tree(self, limit: int = 10) -> TreeNode:
        """Return the queue as folders, with at most *limit* tasks in each."""
        return await self._parts.driver.run(self._flows.tree(limit))

    async def why(self, task_id: str) -> Explanation:
        """Say where a task is, which worker has it, and why it is not running."""
        return await self._parts.driver.run(self._flows.why(task_id))

    async def queues(self) -> QueuesFound:
        """Name the queues of the server, as far as the first keys show."""
        return await self._parts.driver.run(find_queues())


class _InspectionFlows:
    """The flows of both inspectors, for one queue."""

    def __init__(self, queue: TaskQueue | AsyncTaskQueue) -> None:
        self._name, self._run = queue.name, queue.run
        self._parts = internals_of(queue)

    def stat(self) -> Flow[QueueStat]:
        parts = self._parts
        return read_stat(
            self._name, self._run, parts.target, parts.keys, parts.settings
        )

    def ls(self, where: str, limit: int) -> Flow[tuple[TaskRow, ...]]:
        return list_tasks(self._parts.keys, where, _checked_limit(limit))

    def cat(self, task_id: str) -> Flow[TaskDetail]:
        return read_task(self._parts.keys, self._parts.settings, checked_id(task_id))

    def tree(self, limit: int) -> Flow[TreeNode]:
        limit = _checked_limit(limit)
        return read_tree(self._name, self._run, self._parts.keys, limit)

    def why(self, task_id: str) -> Flow[Explanation]:
        return explain_task(self._parts.keys, self._parts.settings, checked_id(task_id))


def _checked_limit(limit: int) -> int:
    return checked_whole(limit, "limit", 1, _LARGEST_LIMIT)
