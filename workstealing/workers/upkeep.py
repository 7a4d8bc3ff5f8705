"""The upkeep of a queue, as a job: no scheduler, beat, monitor or leader exists.

Each slice does a bounded part of what is due: reassign the tasks of dead workers,
promote delayed ones, unpark, feed starving workers from rich deques, forget what is
over, and compare locks with workers. Workers do it when it is overdue, and any process
may install it on its recruiter.
"""

from __future__ import annotations

from workstealing.client.queue import AsyncTaskQueue, TaskQueue
from workstealing.drivers.aio import AsyncDriver
from workstealing.drivers.connect import async_driver, driver
from workstealing.drivers.sync import Driver
from workstealing.queue import maintaining
from workstealing.queue.call import Flow, ask
from workstealing.queue.consuming import steal
from workstealing.queue.dying import outcome_of_deaths
from workstealing.queue.keys import QueueKeys
from workstealing.queue.maintaining import Survey
from workstealing.queue.settings import QueueSettings
from workstealing.recruiting.job import Duty
from workstealing.tasks.naming import checked_queue_name

__all__ = ("AsyncWorkStealer", "WorkStealer", "upkeep")

_BATCH = 200
_PAGE = 100
_EXPIRE_EVERY_MS = 5_000
_RECONCILE_EVERY_MS = 10_000


class WorkStealer:
    """The upkeep of a queue as a `Job`; *by* tells in `stat` who did it.

    Unless the queue was given a client, it has one of its own that waits no longer for
    a reply than other side work does: its host must not hang with Redis.
    """

    def __init__(self, queue: TaskQueue, *, by: str = "recruit") -> None:
        self._queue = queue
        self._by = checked_queue_name(by, "by")
        self._driver: Driver | None = None

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return self._queue.target

    def recruited(self) -> Duty:
        """Do a bounded part of what is due."""
        if self._driver is None:
            self._driver = driver(self._queue.redis)
        flow = upkeep(self._queue.keys, self._queue.settings, self._by)
        return self._driver.run(flow)


class AsyncWorkStealer:
    """The upkeep of a queue as a job; the asyncio face of `WorkStealer`."""

    def __init__(self, queue: AsyncTaskQueue, *, by: str = "recruit") -> None:
        self._queue = queue
        self._by = checked_queue_name(by, "by")
        self._driver: AsyncDriver | None = None

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return self._queue.target

    async def recruited(self) -> Duty:
        """Do a bounded part of what is due."""
        if self._driver is None:
            self._driver = async_driver(self._queue.redis)
        flow = upkeep(self._queue.keys, self._queue.settings, self._by)
        return await self._driver.run(flow)


def upkeep(keys: QueueKeys, settings: QueueSettings, by: str) -> Flow[Duty]:
    """Do a bounded part of what is due, the most urgent first."""
    seen = yield from ask(maintaining.survey(keys))
    done: dict[str, int] = {}
    if seen.dead:
        done["reassign"] = yield from _reassign(keys, settings, seen)
    if seen.due_in_ms == 0:
        done["promote"] = yield from ask(maintaining.promote(keys, most=_BATCH))
    for ability in seen.wanted:
        number = yield from ask(maintaining.unpark(keys, ability, most=_BATCH))
        done["unpark"] = done.get("unpark", 0) + number
    if seen.rich:
        done["rebalance"] = yield from _rebalance(keys, seen)
    if _is_due(seen, "expire", _EXPIRE_EVERY_MS):
        call = maintaining.expire(keys, settings, most=_BATCH)
        done["expire"] = yield from ask(call)
    if _is_due(seen, "reconcile", _RECONCILE_EVERY_MS):
        done["reconcile"] = yield from ask(maintaining.reconcile(keys, page=_PAGE))
    if done:
        yield from ask(maintaining.did(keys, by, tuple(done)))
    if max(done.values(), default=0) >= _BATCH:
        return Duty.MORE
    return Duty.RECRUITED if any(done.values()) else Duty.DISMISSED


def _reassign(keys: QueueKeys, settings: QueueSettings, seen: Survey) -> Flow[int]:
    outcome = outcome_of_deaths(settings)
    returned = 0
    for worker in seen.dead:
        call = maintaining.reassign(keys, settings, worker, outcome, most=_BATCH)
        returned += max(0, (yield from ask(call)))
    return returned


def _rebalance(keys: QueueKeys, seen: Survey) -> Flow[int]:
    """Feed starving workers, the first of them from the richest deque."""
    fed = 0
    candidates = tuple(worker for worker in seen.living if worker not in seen.rich)
    if candidates:
        starving = yield from ask(maintaining.idle(keys, candidates))
        for victim, thief in zip(seen.rich, starving, strict=False):
            fed += yield from ask(steal(keys, victim, thief, wake=True))
    return fed


def _is_due(seen: Survey, duty: str, every_ms: int) -> bool:
    return seen.now_ms - seen.done_at.get(duty, 0) >= every_ms
