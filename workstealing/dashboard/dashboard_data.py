"""The data behind the dashboard, and its actions, through inspectors and queues.

Everything is bounded: how many queues are shown, how many are remembered, and how many
are inspected at once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.schedule_state import ScheduleState
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.dashboard.bulk_acts import (
    BulkAction,
    Changed,
    change_tasks,
    count_matching,
    matching_ids,
)
from workstealing.dashboard.drawings import RatePoint
from workstealing.dashboard.rate_history import RateHistory
from workstealing.drivers.async_driver import AsyncClient
from workstealing.errors import (
    NotUnique,
    RedisError,
    RedisUnavailable,
    TaskNotFound,
    UnknownWorker,
)
from workstealing.inspecting import (
    AsyncInspector,
    DueTimes,
    ErrorGroups,
    Explanation,
    LogTail,
    QueueEvents,
    QueueHistory,
    QueuesFound,
    QueueStat,
    RateMeter,
    Rates,
    TaskDetail,
    TaskFilter,
    TaskPage,
    TaskRow,
    WorkerStat,
)
from workstealing.jobs.fleet_side_work import FleetSideWork
from workstealing.jobs.side_work_ledger import AsyncSideWorkLedger
from workstealing.queue.limit_calls import LimitState
from workstealing.queue.replies import shown
from workstealing.tasks.outcome import State

__all__ = (
    "ACTIONS",
    "SCHEDULE_ACTIONS",
    "Action",
    "DashboardData",
    "FoundTask",
    "Overview",
    "QueueSnapshot",
    "ScheduleAction",
    "TaskView",
    "UnreadableQueue",
    "WorkerView",
    "named_queue",
)

Action = Literal["replay", "delete", "cancel", "pause", "resume", "end-input", "reopen"]
ACTIONS: tuple[Action, ...] = (
    *("replay", "delete", "cancel"),
    *("pause", "resume", "end-input", "reopen"),
)
ScheduleAction = Literal["pause", "resume", "run", "remove"]
SCHEDULE_ACTIONS: tuple[ScheduleAction, ...] = ("pause", "resume", "run", "remove")

_SHOWN = 50
_REMEMBERED = 200
_AT_ONCE = 8
# Minutes whose quantiles are metrics.
_LATELY = 5
_DISCOVER_SECONDS = 15.0
_DEQUE = 50
# Bytes of an envelope or a result; a page that writes more holds up all others.
_LONGEST_TEXT = 64 * 1024


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """A queue at one moment, and its recent rates."""

    stat: QueueStat
    rates: Rates | None
    history: tuple[RatePoint, ...]
    """Tasks per second over the last ten minutes, as far as somebody looked."""


@dataclass(frozen=True, slots=True)
class UnreadableQueue:
    """A queue with something in its keys that cannot be read."""

    queue: str
    run: str
    problem: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The queues of a server."""

    snapshots: tuple[QueueSnapshot, ...]
    unreadable: tuple[UnreadableQueue, ...]
    more: int
    """Further queues, which are not shown."""
    is_all: bool
    """False if the server may have queues that were not found."""
    unreachable: tuple[str, ...] = ()
    """Nodes of a Cluster that did not answer when queues were last looked for."""


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task, and its queue."""

    stat: QueueStat
    task: TaskDetail
    why: Explanation
    log: LogTail


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker, what it runs, and the beginning of its deque."""

    stat: QueueStat
    worker: WorkerStat
    running: tuple[TaskRow, ...]
    deque: tuple[TaskRow, ...]


@dataclass(frozen=True, slots=True)
class FoundTask:
    """In which queue a task of an id was found."""

    id: str
    task: str
    state: str
    queue: str
    run: str


@dataclass(frozen=True, slots=True)
class _WatchedQueue:
    queue: AsyncTaskQueue
    inspector: AsyncInspector
    meter: RateMeter = field(default_factory=RateMeter)
    history: RateHistory = field(default_factory=RateHistory)

    def note(self, stat: QueueStat) -> QueueSnapshot:
        """Remember a stat, so that rates can be told."""
        self.history.note(stat)
        return QueueSnapshot(stat, self.meter.note(stat), self.history.points())


def named_queue(name: str, client: AsyncClient) -> AsyncTaskQueue:
    """Return the queue that a user names by `name` or `name/run`."""
    queue, _, run = name.partition("/")
    return AsyncTaskQueue(queue, client, run=run or "default")


class DashboardData:
    """Inspects the queues of one server.

    Args:
        client: a client of that server.
        queues: shown first, with their own settings.
        clock: the source of time.
    """

    def __init__(
        self,
        client: AsyncClient,
        queues: Iterable[AsyncTaskQueue] = (),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._clock = clock
        self._ledger = AsyncSideWorkLedger(client)
        self._given = {(queue.name, queue.run): queue for queue in queues}
        self._watched_queues: OrderedDict[tuple[str, str], _WatchedQueue] = (
            OrderedDict()
        )
        self._found = QueuesFound((), is_all=True)
        self._discovered_at: float | None = None

    async def overview(self, workers: int | None = 0) -> Overview:
        """Inspect the given queues, and those that were found; see `snapshot`."""
        names = await self._names()
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def one(name: str, run: str) -> QueueSnapshot | UnreadableQueue:
            async with at_once:
                try:
                    return await self.snapshot(name, run, workers)
                except RedisUnavailable as error:
                    away.append(error)
                    return UnreadableQueue(name, run, shown(error))
                # One queue must not hide the others, whatever is in its keys.
                except Exception as error:  # noqa: BLE001
                    return UnreadableQueue(name, run, shown(error))

        away: list[RedisUnavailable] = []
        seen = await asyncio.gather(*(one(*name) for name in names[:_SHOWN]))
        if away and len(away) == len(seen):
            # It is no single node of a Cluster that is away.
            raise away[0]
        return Overview(
            tuple(snapshot for snapshot in seen if isinstance(snapshot, QueueSnapshot)),
            tuple(queue for queue in seen if isinstance(queue, UnreadableQueue)),
            max(0, len(names) - _SHOWN),
            self._found.is_all,
            self._found.unreachable,
        )

    async def snapshot(
        self, name: str, run: str, workers: int | None = 0, first: str | None = None
    ) -> QueueSnapshot:
        """Inspect one queue, and describe some workers; None: all, and the memory."""
        watched = self._watched(name, run)
        if workers is None:
            stat = await watched.inspector.stat()
        else:
            stat = await watched.inspector.glance(workers, first)
        return watched.note(stat)

    async def tasks(
        self, name: str, run: str, wanted: TaskFilter, after: str, limit: int
    ) -> tuple[QueueStat, TaskPage]:
        """Find tasks of a queue, and inspect it."""
        watched = self._watched(name, run)
        stat, page = await watched.inspector.browse(wanted, after, limit)
        return watched.note(stat).stat, page

    async def error_groups(self, name: str, run: str, state: str) -> ErrorGroups:
        """Group dead letters, or delayed tasks, by error and line."""
        return await self._watched(name, run).inspector.error_groups(state)

    async def history(self, stat: QueueStat, minutes: int) -> QueueHistory:
        """Return what ended in the last minutes, by task name."""
        inspector = self._watched(stat.queue, stat.run).inspector
        return await inspector.history(stat.now_ms, minutes)

    async def lately(self, stats: Sequence[QueueStat]) -> list[QueueHistory]:
        """Return what ended in the last minutes in each of some queues."""
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def one(stat: QueueStat) -> QueueHistory:
            async with at_once:
                try:
                    return await self.history(stat, _LATELY)
                # What is in the keys of one, or a node that is away, must not hide the
                # others.
                except Exception:  # noqa: BLE001
                    return QueueHistory((), ())

        return await asyncio.gather(*map(one, stats))

    async def events(self, name: str, run: str) -> QueueEvents:
        """Return the last steals, and the last releases that joined."""
        return await self._watched(name, run).inspector.events()

    async def due_times(self, stat: QueueStat) -> DueTimes:
        """Count the delayed tasks of a queue by when they are due."""
        inspector = self._watched(stat.queue, stat.run).inspector
        return await inspector.due_times(stat.now_ms)

    async def task(self, name: str, run: str, task_id: str) -> TaskView:
        """Return a task, why it is where it is, and its log."""
        snapshot = await self.snapshot(name, run)
        inspector = self._watched(name, run).inspector
        seen, why = await inspector.examine(task_id, _LONGEST_TEXT)
        return TaskView(snapshot.stat, seen, why, await inspector.log_tail(task_id))

    async def worker(self, name: str, run: str, worker: str) -> WorkerView:
        """Return a worker, and what it has to do.

        Raises:
            UnknownWorker: there is no such worker, or it has left.
        """
        stat = (await self.snapshot(name, run, 1, worker)).stat
        found = [one for one in stat.workers if one.name == worker]
        if not found:
            raise UnknownWorker(f"there is no worker {worker}, or it has left")
        inspector = self._watched(name, run).inspector
        running = await inspector.search(
            TaskFilter("running", worker=worker), limit=_DEQUE
        )
        waiting = await inspector.ls(f"queues/{worker}", _DEQUE)
        return WorkerView(stat, found[0], running.rows, waiting)

    async def find(self, task_id: str) -> list[FoundTask]:
        """Look for a task in all queues that are shown.

        Raises:
            RedisUnavailable: it was not found, and a queue could not be asked.
        """
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def one(name: str, run: str) -> FoundTask | None:
            queue = self._watched(name, run)
            async with at_once:
                try:
                    state = (await queue.queue.handle(task_id).state()).state
                    if state is State.UNKNOWN:
                        return None
                    task = (await queue.inspector.cat(task_id, 1)).task
                    return FoundTask(task_id, task, state.value, name, run)
                except RedisUnavailable as error:
                    away.append(error)
                except (RedisError, TaskNotFound):
                    # It cannot be read, or is gone by now; the others can.
                    pass
            return None

        away: list[RedisUnavailable] = []
        names = (await self._names())[:_SHOWN]
        seen = await asyncio.gather(*(one(*name) for name in names))
        found = [task for task in seen if task is not None]
        if away and not found:
            raise away[0]
        return found

    async def change(
        self, action: BulkAction, name: str, run: str, ids: Sequence[str]
    ) -> Changed:
        """Replay, delete or cancel tasks by their ids."""
        return await change_tasks(self._watched(name, run).queue, action, ids)

    async def count(self, name: str, run: str, wanted: TaskFilter) -> tuple[int, bool]:
        """Count tasks that match, and say whether these are all."""
        return await count_matching(self._watched(name, run).inspector, wanted)

    async def matching(
        self, name: str, run: str, wanted: TaskFilter
    ) -> tuple[list[str], bool]:
        """Name tasks that match, and say whether there may be more."""
        return await matching_ids(self._watched(name, run).inspector, wanted)

    async def side_work(self) -> FleetSideWork:
        """Return the side work of the fleet, as far as recruiters publish it."""
        return await self._ledger.read()

    async def limits(self, name: str, run: str) -> tuple[LimitState, ...]:
        """Return the limits of a queue, in the order of their names."""
        return await self._watched(name, run).queue.limits()

    async def act(
        self, action: Action, name: str, run: str, task_id: str, task: str = ""
    ) -> str:
        """Act on a task by its id, or on a queue; return a word for the result.

        A queue is paused and resumed as a whole, or the tasks of one name, *task*.
        """
        queue = self._watched(name, run).queue
        if action == "pause":
            return "paused" if await queue.pause(task or None) else "was-paused"
        if action == "resume":
            return "resumed" if await queue.resume(task or None) else "not-paused"
        if action == "end-input":
            await queue.end_input()
            return "input-ended"
        if action == "reopen":
            await queue.reopen_input()
            return "reopened"
        if action == "cancel":
            return await queue.handle(task_id).cancel()
        if action == "replay":
            try:
                return "replayed" if await queue.replay(task_id) else "not-dead"
            except NotUnique:
                return "not-unique"
        return "deleted" if await queue.drop(task_id) else "not-dead"

    async def schedules(self, name: str, run: str) -> tuple[ScheduleState, ...]:
        """Return the schedules of a queue, in the order of their names."""
        return await self._watched(name, run).queue.schedules()

    async def steer(
        self, action: ScheduleAction, name: str, run: str, schedule: str
    ) -> str:
        """Pause, resume, run or remove a schedule; return a word for the result."""
        handle = self._watched(name, run).queue.schedule_handle(schedule)
        if action == "pause":
            await handle.pause()
            return "schedule-paused"
        if action == "resume":
            await handle.resume()
            return "schedule-resumed"
        if action == "run":
            return (await handle.run()).id
        return "removed" if await handle.remove() else "no-schedule"

    async def close(self) -> None:
        """Close the client."""
        await self._client.aclose()

    async def _names(self) -> tuple[tuple[str, str], ...]:
        await self._discover()
        return tuple(dict.fromkeys((*self._given, *self._found.names)))

    def _watched(self, name: str, run: str) -> _WatchedQueue:
        key = (name, run)
        watched = self._watched_queues.get(key)
        if watched is None:
            queue = self._given.get(key)
            if queue is None:
                queue = AsyncTaskQueue(name, self._client, run=run)
            watched = self._watched_queues[key] = _WatchedQueue(
                queue, AsyncInspector(queue)
            )
        self._watched_queues.move_to_end(key)
        if len(self._watched_queues) > _REMEMBERED:
            self._watched_queues.popitem(last=False)
        return watched

    async def _discover(self) -> None:
        now, before = self._clock.monotonic(), self._discovered_at
        if before is not None and now - before < _DISCOVER_SECONDS:
            return
        inspector = AsyncInspector(AsyncTaskQueue("any", self._client))
        try:
            found = await inspector.queues()
        except RedisUnavailable:
            raise
        except RedisError:
            # A server may forbid SCAN.
            found = QueuesFound((), is_all=False)
        if found.unreachable:
            # What was found on such a node before is still there.
            names = sorted({*found.names, *self._found.names})
            found = replace(found, names=tuple(names))
        self._found = found
        self._discovered_at = now
