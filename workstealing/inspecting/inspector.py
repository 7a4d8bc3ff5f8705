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
from workstealing.errors import InvalidName, RedisUnavailable
from workstealing.inspecting.counting import SomeWorkers
from workstealing.inspecting.due_times import DueTimes, read_due_times
from workstealing.inspecting.error_groups import ErrorGroups, read_error_groups
from workstealing.inspecting.prospects import Surroundings
from workstealing.inspecting.queue_events import QueueEvents, read_events
from workstealing.inspecting.shard_views import (
    list_shards,
    read_reachable_stats,
    read_shard_trees,
    read_stats,
    search_shards,
)
from workstealing.inspecting.task_detail import examine_task, explain_task
from workstealing.inspecting.task_history import QueueHistory, read_history
from workstealing.inspecting.task_log_tail import LogTail, read_log_tail
from workstealing.inspecting.task_search import TaskFilter, TaskPage
from workstealing.inspecting.views import (
    Explanation,
    QueuesFound,
    QueueStat,
    TaskDetail,
    TaskRow,
    TreeNode,
)
from workstealing.queue.inspection_calls import Counts, counts
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import text
from workstealing.queue.settings import QueueSettings
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

    def glance(self, workers: int = 20, first: str | None = None) -> QueueStat:
        """Count as `stat` does, with as few commands for any number of workers.

        So many workers are described: those with the longest deques, or by name from
        the *first* on; and a few dead ones. `bytes` is not measured.
        """
        return self._parts.driver.run(self._flows.glance(workers, first))

    def ls(self, where: str = "inbox", limit: int = 20) -> tuple[TaskRow, ...]:
        """List one of `PLACES`, such as inbox, or queues/WORKER."""
        return self._parts.driver.run(self._flows.ls(where, limit))

    def cat(self, task_id: str, most: int | None = None) -> TaskDetail:
        """Return a task with its envelope, outcome and traceback.

        An envelope or a result of more than *most* bytes is the beginning of its text.

        Raises:
            TaskNotFound: the task does not exist, or its outcome has expired.
        """
        return self._parts.driver.run(self._flows.examine(task_id, most))[0]

    def examine(
        self, task_id: str, most: int | None = None
    ) -> tuple[TaskDetail, Explanation]:
        """Return what `cat` and `why` do, looking once."""
        return self._parts.driver.run(self._flows.examine(task_id, most))

    def tree(self, limit: int = 10) -> TreeNode:
        """Return the queue as folders, with at most *limit* tasks in each."""
        return self._parts.driver.run(self._flows.tree(limit))

    def why(self, task_id: str) -> Explanation:
        """Explain where a task is, which worker has it, and why it is not running."""
        return self._parts.driver.run(self._flows.why(task_id))

    def browse(
        self, wanted: TaskFilter, after: str = "", limit: int = 50
    ) -> tuple[QueueStat, TaskPage]:
        """Glance at the queue and search it, counting once; it describes no worker."""
        return self._parts.driver.run(self._flows.browse(wanted, after, limit))

    def search(self, wanted: TaskFilter, after: str = "", limit: int = 50) -> TaskPage:
        """Find tasks by state, name, worker, error, id and age, a page at a time.

        At most 500 tasks are looked at; *after* is that of the page before.
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

        Workers add to it every few seconds. Shards whose node is away are left out.
        """
        return self._parts.driver.run(self._flows.history(now_ms, minutes))

    def events(self) -> QueueEvents:
        """Return the last 200 steals, and the last 50 releases that joined.

        Shards whose node is away are left out.
        """
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

    async def glance(self, workers: int = 20, first: str | None = None) -> QueueStat:
        """Count as `stat` does, with as few commands for any number of workers.

        So many workers are described: those with the longest deques, or by name from
        the *first* on; and a few dead ones. `bytes` is not measured.
        """
        return await self._parts.driver.run(self._flows.glance(workers, first))

    async def ls(self, where: str = "inbox", limit: int = 20) -> tuple[TaskRow, ...]:
        """List one of `PLACES`, such as inbox, or queues/WORKER."""
        return await self._parts.driver.run(self._flows.ls(where, limit))

    async def cat(self, task_id: str, most: int | None = None) -> TaskDetail:
        """Return a task with its envelope, outcome and traceback.

        An envelope or a result of more than *most* bytes is the beginning of its text.

        Raises:
            TaskNotFound: the task does not exist, or its outcome has expired.
        """
        return (await self._parts.driver.run(self._flows.examine(task_id, most)))[0]

    async def examine(
        self, task_id: str, most: int | None = None
    ) -> tuple[TaskDetail, Explanation]:
        """Return what `cat` and `why` do, looking once."""
        return await self._parts.driver.run(self._flows.examine(task_id, most))

    async def tree(self, limit: int = 10) -> TreeNode:
        """Return the queue as folders, with at most *limit* tasks in each."""
        return await self._parts.driver.run(self._flows.tree(limit))

    async def why(self, task_id: str) -> Explanation:
        """Explain where a task is, which worker has it, and why it is not running."""
        return await self._parts.driver.run(self._flows.why(task_id))

    async def browse(
        self, wanted: TaskFilter, after: str = "", limit: int = 50
    ) -> tuple[QueueStat, TaskPage]:
        """Glance at the queue and search it, counting once; it describes no worker."""
        return await self._parts.driver.run(self._flows.browse(wanted, after, limit))

    async def search(
        self, wanted: TaskFilter, after: str = "", limit: int = 50
    ) -> TaskPage:
        """Find tasks by state, name, worker, error, id and age, a page at a time.

        At most 500 tasks are looked at; *after* is that of the page before.
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

        Workers add to it every few seconds. Shards whose node is away are left out.
        """
        return await self._parts.driver.run(self._flows.history(now_ms, minutes))

    async def events(self) -> QueueEvents:
        """Return the last 200 steals, and the last 50 releases that joined.

        Shards whose node is away are left out.
        """
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
        self._queue = queue
        self._name, self._run = queue.name, queue.run
        self._parts = internals_of(queue)

    def stat(self) -> Flow[QueueStat]:
        return self._reachable_stat(None)

    def glance(self, workers: int, first: str | None) -> Flow[QueueStat]:
        some = SomeWorkers(checked_whole(workers, "workers", 0, _LARGEST_LIMIT), first)
        return (yield from self._reachable_stat(some))

    def ls(self, where: str, limit: int) -> Flow[tuple[TaskRow, ...]]:
        shards = yield from self._shards()
        return (yield from list_shards(shards, where, _checked_limit(limit)))

    def examine(
        self, task_id: str, most: int | None
    ) -> Flow[tuple[TaskDetail, Explanation]]:
        if most is not None:
            checked_whole(most, "most", 1)
        keys, settings = (yield from self._shard_of(task_id)), self._parts.settings
        around = self._around(keys)
        return (yield from examine_task(keys, settings, task_id, most, around=around))

    def tree(self, limit: int) -> Flow[TreeNode]:
        limit, shards = _checked_limit(limit), (yield from self._shards())
        return (yield from read_shard_trees(self._name, self._run, shards, limit))

    def why(self, task_id: str) -> Flow[Explanation]:
        keys, settings = (yield from self._shard_of(task_id)), self._parts.settings
        around = self._around(keys)
        return (yield from explain_task(keys, settings, task_id, around=around))

    def browse(
        self, wanted: TaskFilter, after: str, limit: int
    ) -> Flow[tuple[QueueStat, TaskPage]]:
        seen, limit = (yield from self._counts()), _checked_limit(limit)
        page = yield from search_shards(seen, wanted, after, limit)
        stat = yield from read_stats(*self._described(), seen, SomeWorkers(0))
        return stat, page

    def search(self, wanted: TaskFilter, after: str, limit: int) -> Flow[TaskPage]:
        seen, limit = (yield from self._counts()), _checked_limit(limit)
        return (yield from search_shards(seen, wanted, after, limit))

    def error_groups(self, state: str) -> Flow[ErrorGroups]:
        return (yield from read_error_groups((yield from self._shards()), state))

    def due_times(self, now_ms: int) -> Flow[DueTimes]:
        return (yield from read_due_times((yield from self._shards()), now_ms))

    def history(self, now_ms: int, minutes: int) -> Flow[QueueHistory]:
        return (yield from read_history((yield from self._shards()), now_ms, minutes))

    def events(self) -> Flow[QueueEvents]:
        return (yield from read_events((yield from self._shards())))

    def log_tail(self, task_id: str, limit: int) -> Flow[LogTail]:
        limit, keys = _checked_limit(limit), (yield from self._shard_of(task_id))
        return (yield from read_log_tail(keys, task_id, limit))

    def _shards(self) -> Flow[tuple[QueueKeys, ...]]:
        return self._parts.shards.known()

    def _shard_of(self, task_id: str) -> Flow[QueueKeys]:
        yield from self._shards()
        return (yield from self._parts.shards.find(checked_id(task_id)))

    def _around(self, keys: QueueKeys) -> Surroundings:
        others = [one for one in self._parts.shards.all if one is not keys]
        return Surroundings(self._options(), others, self._queue.registry)

    def _counts(self) -> Flow[list[tuple[QueueKeys, Counts]]]:
        """Read the counts of each shard."""
        found: list[tuple[QueueKeys, Counts]] = []
        for keys in (yield from self._shards()):
            seen = yield from ask(counts(keys))
            found.append((keys, seen))
        return found

    def _reachable_stat(self, some: SomeWorkers | None) -> Flow[QueueStat]:
        shards = yield from self._shards()
        return (yield from read_reachable_stats(*self._described(), shards, some))

    def _described(self) -> tuple[str, str, str, QueueSettings]:
        parts = self._parts
        return self._name, self._run, parts.target, parts.settings

    def _options(self) -> str:
        """Name the queue as on the command line, so that a hint can be pasted."""
        run = [] if self._run == "default" else ["--run", self._run]
        return shlex.join(["--queue", self._name, *run])


def _checked_limit(limit: int) -> int:
    return checked_whole(limit, "limit", 1, _LARGEST_LIMIT)


def find_queues() -> Flow[QueuesFound]:
    """Find the queues of a server by the names of its keys, without reading values.

    A server with millions of keys is not scanned to the end, but for some 20,000 keys
    of each node; `is_all` is False if there were more, or if a node is away.
    """
    found: set[tuple[str, str]] = set()
    is_all, nodes = True, Nodes.parse((yield Nodes()))
    away: list[str] = []
    for node in nodes:
        try:
            some, is_whole = yield from _find_on_node(node)
        except RedisUnavailable:
            away.append(node)
            if len(away) == len(nodes):
                raise
            continue
        found |= some
        is_all = is_all and is_whole
    return QueuesFound(tuple(sorted(found)), is_all and not away, tuple(away))


def _find_on_node(node: str) -> Flow[tuple[set[tuple[str, str]], bool]]:
    """Find the queues of one node; False if it has more keys than were scanned."""
    found: set[tuple[str, str]] = set()
    cursor = "0"
    for _ in range(_PAGES_PER_NODE):
        scan = ("SCAN", cursor, "MATCH", _PATTERN, "COUNT", _PAGE)
        cursor, some = yield from ask(RedisCommand(scan, _page, node))
        found |= some
        if cursor == "0":
            break
    return found, cursor == "0"


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
