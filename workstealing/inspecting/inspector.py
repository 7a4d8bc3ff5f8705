"""Reads a queue without changing it; the sync and the asyncio inspector.

Everything is bounded: a list has a limit, and no hash of tasks is read as a whole. So
inspecting a queue of a million tasks costs no more than inspecting one of ten.
"""

from __future__ import annotations

import shlex
from typing import Any

from workstealing._checks import checked_id, checked_queue_name, checked_whole
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.errors import InvalidName
from workstealing.inspecting.counting import read_stat
from workstealing.inspecting.due_times import DueTimes, read_due_times
from workstealing.inspecting.error_groups import ErrorGroups, read_error_groups
from workstealing.inspecting.listing import list_tasks
from workstealing.inspecting.queue_events import QueueEvents, read_events
from workstealing.inspecting.task_detail import explain_task, read_task
from workstealing.inspecting.task_history import QueueHistory, read_history
from workstealing.inspecting.task_log_tail import LogTail, read_log_tail
from workstealing.inspecting.task_search import TaskFilter, TaskPage, search_tasks
from workstealing.inspecting.tree import read_tree
from workstealing.inspecting.views import (
    Explanation,
    QueuesFound,
    QueueStat,
    TaskDetail,
    TaskRow,
    TreeNode,
)
from workstealing.queue.replies import text
from workstealing.queue.steps import Flow, Nodes, RedisCommand, ask

__all__ = ("AsyncInspector", "Inspector", "find_queues")

_LARGEST_LIMIT = 1000
# The keys of queues.
_PATTERN = "ws:{*/*}:*"
_PAGE = 1000
_PAGES_PER_NODE = 20


class Inspector:
    """Reads one run of a queue."""

    def __init__(self, queue: TaskQueue) -> None:
        self._parts = internals_of(queue)
        self._flows = _InspectionFlows(queue)

    def stat(self) -> QueueStat:
        """Count the tasks in each place, describe the workers, sum up what was done."""
        return self._parts.driver.run(self._flows.stat())

    def ls(self, where: str = "inbox", limit: int = 20) -> tuple[TaskRow, ...]:
        """List one of `PLACES`, such as inbox, or queues/WORKER."""
        return self._parts.driver.run(self._flows.ls(where, limit))

    def cat(self, task_id: str, most: int | None = None) -> TaskDetail:
        """Return a task with its envelope, outcome and traceback.

        An envelope or a result of more than *most* bytes is the beginning of its text.

        Raises:
            TaskNotFound: the task does not exist, or its outcome has expired.
        """
        return self._parts.driver.run(self._flows.cat(task_id, most))

    def tree(self, limit: int = 10) -> TreeNode:
        """Return the queue as folders, with at most *limit* tasks in each."""
        return self._parts.driver.run(self._flows.tree(limit))

    def why(self, task_id: str) -> Explanation:
        """Explain where a task is, which worker has it, and why it is not running."""
        return self._parts.driver.run(self._flows.why(task_id))

    def search(self, wanted: TaskFilter, after: str = "", limit: int = 50) -> TaskPage:
        """Find tasks by state, name, worker, error, id and age, a page at a time.

        At most a thousand tasks are looked at; *after* is that of the page before.
        """
        return self._parts.driver.run(self._flows.search(wanted, after, limit))

    def error_groups(self, state: str = "dead") -> ErrorGroups:
        """Group the newest dead letters, or delayed tasks, by error and line."""
        return self._parts.driver.run(self._flows.error_groups(state))

    def due_times(self, now_ms: int) -> DueTimes:
        """Count delayed tasks by when they are due, as seen from a moment."""
        return self._parts.driver.run(self._flows.due_times(now_ms))

    def history(self, now_ms: int, minutes: int = 60) -> QueueHistory:
        """Return what ended in the minutes before a moment, by task name; 480 at most.

        Workers add to it every few seconds.
        """
        return self._parts.driver.run(self._flows.history(now_ms, minutes))

    def events(self) -> QueueEvents:
        """Return the last 200 steals, and the last 50 releases that joined."""
        return self._parts.driver.run(self._flows.events())

    def log_tail(self, task_id: str, limit: int = 200) -> LogTail:
        """Return the last records that are kept of what a task logged and printed."""
        return self._parts.driver.run(self._flows.log_tail(task_id, limit))

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
        """List one of `PLACES`, such as inbox, or queues/WORKER."""
        return await self._parts.driver.run(self._flows.ls(where, limit))

    async def cat(self, task_id: str, most: int | None = None) -> TaskDetail:
        """Return a task with its envelope, outcome and traceback.

        An envelope or a result of more than *most* bytes is the beginning of its text.

        Raises:
            TaskNotFound: the task does not exist, or its outcome has expired.
        """
        return await self._parts.driver.run(self._flows.cat(task_id, most))

    async def tree(self, limit: int = 10) -> TreeNode:
        """Return the queue as folders, with at most *limit* tasks in each."""
        return await self._parts.driver.run(self._flows.tree(limit))

    async def why(self, task_id: str) -> Explanation:
        """Explain where a task is, which worker has it, and why it is not running."""
        return await self._parts.driver.run(self._flows.why(task_id))

    async def search(
        self, wanted: TaskFilter, after: str = "", limit: int = 50
    ) -> TaskPage:
        """Find tasks by state, name, worker, error, id and age, a page at a time.

        At most a thousand tasks are looked at; *after* is that of the page before.
        """
        return await self._parts.driver.run(self._flows.search(wanted, after, limit))

    async def error_groups(self, state: str = "dead") -> ErrorGroups:
        """Group the newest dead letters, or delayed tasks, by error and line."""
        return await self._parts.driver.run(self._flows.error_groups(state))

    async def due_times(self, now_ms: int) -> DueTimes:
        """Count delayed tasks by when they are due, as seen from a moment."""
        return await self._parts.driver.run(self._flows.due_times(now_ms))

    async def history(self, now_ms: int, minutes: int = 60) -> QueueHistory:
        """Return what ended in the minutes before a moment, by task name; 480 at most.

        Workers add to it every few seconds.
        """
        return await self._parts.driver.run(self._flows.history(now_ms, minutes))

    async def events(self) -> QueueEvents:
        """Return the last 200 steals, and the last 50 releases that joined."""
        return await self._parts.driver.run(self._flows.events())

    async def log_tail(self, task_id: str, limit: int = 200) -> LogTail:
        """Return the last records that are kept of what a task logged and printed."""
        return await self._parts.driver.run(self._flows.log_tail(task_id, limit))

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

    def cat(self, task_id: str, most: int | None) -> Flow[TaskDetail]:
        if most is not None:
            checked_whole(most, "most", 1)
        parts, task_id = self._parts, checked_id(task_id)
        where = self._options()
        return read_task(parts.keys, parts.settings, task_id, most, where=where)

    def tree(self, limit: int) -> Flow[TreeNode]:
        limit = _checked_limit(limit)
        return read_tree(self._name, self._run, self._parts.keys, limit)

    def why(self, task_id: str) -> Flow[Explanation]:
        parts, task_id = self._parts, checked_id(task_id)
        return explain_task(parts.keys, parts.settings, task_id, where=self._options())

    def search(self, wanted: TaskFilter, after: str, limit: int) -> Flow[TaskPage]:
        return search_tasks(self._parts.keys, wanted, after, _checked_limit(limit))

    def error_groups(self, state: str) -> Flow[ErrorGroups]:
        return read_error_groups(self._parts.keys, state)

    def due_times(self, now_ms: int) -> Flow[DueTimes]:
        return read_due_times(self._parts.keys, now_ms)

    def history(self, now_ms: int, minutes: int) -> Flow[QueueHistory]:
        return read_history(self._parts.keys, now_ms, minutes)

    def events(self) -> Flow[QueueEvents]:
        return read_events(self._parts.keys)

    def log_tail(self, task_id: str, limit: int) -> Flow[LogTail]:
        limit = _checked_limit(limit)
        return read_log_tail(self._parts.keys, checked_id(task_id), limit)

    def _options(self) -> str:
        """Name the queue as on the command line, so that a hint can be pasted."""
        run = [] if self._run == "default" else ["--run", self._run]
        return shlex.join(["--queue", self._name, *run])


def _checked_limit(limit: int) -> int:
    return checked_whole(limit, "limit", 1, _LARGEST_LIMIT)


def find_queues() -> Flow[QueuesFound]:
    """Find the queues of a server by the names of its keys, without reading values.

    A server with millions of keys is not scanned to the end, but for some 20,000 keys
    of each node; `is_all` is False if there were more.
    """
    found: set[tuple[str, str]] = set()
    is_all = True
    for node in Nodes.parse((yield Nodes())):
        cursor = "0"
        for _ in range(_PAGES_PER_NODE):
            scan = ("SCAN", cursor, "MATCH", _PATTERN, "COUNT", _PAGE)
            cursor, some = yield from ask(RedisCommand(scan, _page, node))
            found |= some
            if cursor == "0":
                break
        is_all = is_all and cursor == "0"
    return QueuesFound(tuple(sorted(found)), is_all)


def _page(reply: Any) -> tuple[str, set[tuple[str, str]]]:
    cursor, keys = reply
    if isinstance(cursor, dict):  # a Cluster client returns one per node
        (cursor,) = cursor.values()
    found = set()
    for key in keys:
        name = key.decode(errors="replace") if isinstance(key, bytes) else str(key)
        queue, _, run = name[len("ws:{") : name.find("}")].partition("/")
        try:
            found.add((checked_queue_name(queue), checked_queue_name(run)))
        except InvalidName:
            # The key of another application.
            continue
    return text(cursor), found
