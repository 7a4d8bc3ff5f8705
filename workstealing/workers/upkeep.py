"""The upkeep of a queue, as a job: no scheduler, beat, monitor or leader exists.

Each slice does a bounded part of what is due: reassign the tasks of dead workers,
promote delayed ones, fire schedules, unpark, go on with what somebody began to resume,
feed starving workers from rich deques, forget what is over, and compare locks with
workers. Workers do it when it is overdue, and any process may install it on its
recruiter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workstealing._checks import checked_queue_name
from workstealing._logs import BackgroundLogger
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import QueueInternals, internals_of
from workstealing.client.queue_schedules import QueueSchedules
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.connect import async_driver_source, driver_source
from workstealing.queue import pause_calls, upkeep_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Flow, ask
from workstealing.queue.upkeep_calls import Survey
from workstealing.queue.worker_calls import GivenUp, Rescued, steal
from workstealing.recruiting.job import Duty
from workstealing.tasks.reports import WHAT_TO_DO
from workstealing.telemetry.task_events import (
    TaskGivenUp,
    TasksReassigned,
    TasksStolen,
)
from workstealing.telemetry.task_observers import TaskObservers
from workstealing.workers.side_connection import SideConnection

__all__ = (
    "AsyncWorkStealer",
    "WorkStealer",
    "tell_given_up",
    "tell_rescued",
    "upkeep",
)

logger = BackgroundLogger(__name__)

_BATCH = 200
# Ids in one line of the log.
_MOST_NAMED = 20
_PAGE = 100
_EXPIRE_EVERY_MS = 5_000
# Whatever a survey says: it does not count outcomes, of which fewer may be kept by now.
_EXPIRE_AT_LAST_MS = 60_000
_RECONCILE_EVERY_MS = 10_000


class WorkStealer:
    """The upkeep of a queue as a `Job`; *by* tells in `stat` who did it.

    Unless the queue was given a client, it has one of its own that waits no longer for
    a reply than other side work does: its host must not hang with Redis.
    """

    def __init__(self, queue: TaskQueue, *, by: str = "recruit") -> None:
        parts = internals_of(queue)
        self._by = checked_queue_name(by, "by")
        self._connection = SideConnection(parts, driver_source)
        self._rounds = _UpkeepRounds(parts)

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return self._connection.target

    def recruited(self) -> Duty:
        """Do a bounded part of what is due."""
        driver = self._connection.source.driver
        return driver.run(self._rounds.upkeep_of_next(self._by))

    def close(self) -> None:
        """Release its connections; it connects again if it is used afterwards.

        A client that the queue was given stays open.
        """
        self._connection.source.close()


class AsyncWorkStealer:
    """The upkeep of a queue as a job; the asyncio face of `WorkStealer`."""

    def __init__(self, queue: AsyncTaskQueue, *, by: str = "recruit") -> None:
        parts = internals_of(queue)
        self._by = checked_queue_name(by, "by")
        self._connection = SideConnection(parts, async_driver_source)
        self._rounds = _UpkeepRounds(parts)

    @property
    def target(self) -> str:
        """Name the server; jobs of one server share a breaker."""
        return self._connection.target

    async def recruited(self) -> Duty:
        """Do a bounded part of what is due."""
        driver = self._connection.source.driver
        return await driver.run(self._rounds.upkeep_of_next(self._by))

    async def close(self) -> None:
        """Release its connections; it connects again if it is used afterwards.

        A client that the queue was given stays open.
        """
        await self._connection.source.close()


class _UpkeepRounds:
    """The upkeep of the shards of a queue, one after another."""

    def __init__(self, parts: QueueInternals[Any]) -> None:
        self._parts = parts
        self._has_declared = self._has_asked = False

    def upkeep_of_next(self, by: str) -> Flow[Duty]:
        """Do a bounded part of what is due in the next shard."""
        parts, shards = self._parts, self._parts.shards
        if parts.schedules.has_code and not self._has_declared:
            yield from parts.schedules.declare()
            self._has_declared = True
        elif parts.schedules.is_renewal_due(parts.clock.monotonic()):
            yield from parts.schedules.renew(parts.clock.monotonic())
        if shards.are_several or not self._has_asked:
            yield from shards.known()
            self._has_asked = True
        keys = shards.all[shards.next_turn()]
        return (
            yield from upkeep(
                keys, parts.settings, by, parts.schedules, parts.observers
            )
        )


def upkeep(
    keys: QueueKeys,
    settings: QueueSettings,
    by: str,
    schedules: QueueSchedules,
    observers: TaskObservers | None = None,
) -> Flow[Duty]:
    """Do a bounded part of what is due, the most urgent first."""
    seen = yield from ask(upkeep_calls.survey(keys, settings))
    done: dict[str, int] = {}
    if seen.dead:
        done["reassign"] = yield from _reassign(keys, settings, seen, observers)
    if seen.due_in_ms == 0:
        done["promote"] = yield from ask(upkeep_calls.promote(keys, most=_BATCH))
    if seen.due_schedules:
        done["schedules"] = yield from schedules.fire_due()
    for ability in seen.wanted:
        number = yield from ask(upkeep_calls.unpark(keys, ability, most=_BATCH))
        done["unpark"] = done.get("unpark", 0) + number
    for name in seen.resuming:
        part = pause_calls.resume(keys, name, goes_on=True, most=_BATCH)
        moved = (yield from ask(part)).moved
        done["resume"] = done.get("resume", 0) + moved
    if seen.rich:
        done["rebalance"] = yield from _rebalance(keys, seen, observers)
    expire_every_ms = _EXPIRE_EVERY_MS if seen.has_old else _EXPIRE_AT_LAST_MS
    if _is_due(seen, "expire", expire_every_ms):
        call = upkeep_calls.expire(keys, settings, most=_BATCH)
        done["expire"] = yield from ask(call)
    if seen.has_locks and _is_due(seen, "reconcile", _RECONCILE_EVERY_MS):
        done["reconcile"] = yield from ask(upkeep_calls.reconcile(keys, page=_PAGE))
    if done:
        yield from ask(upkeep_calls.record_duties(keys, by, tuple(done)))
    if max(done.values(), default=0) >= _BATCH:
        return Duty.MORE
    return Duty.RECRUITED if any(done.values()) else Duty.DISMISSED


def tell_rescued(
    observers: TaskObservers | None, worker: str, rescued: Rescued, why: str
) -> None:
    """Tell the log and observers what has become of the tasks of a worker that died."""
    if rescued.returned <= 0:
        return
    named = ", ".join(rescued.taken[:_MOST_NAMED])
    others = len(rescued.taken) - _MOST_NAMED
    logger.warning(
        "worker %s died: %s; %d of its tasks go to others, and %d are given up%s",
        worker,
        why,
        rescued.returned - len(rescued.given_up),
        len(rescued.given_up),
        (f"; it may have been running {named}" if named else "")
        + (f" or one of {others} more" if others > 0 else ""),
    )
    if observers is not None:
        event = TasksReassigned(observers.queue, worker, rescued.returned)
        observers.emit(event)
    tell_given_up(observers, worker, rescued.given_up)


def tell_given_up(
    observers: TaskObservers | None, worker: str, given_up: Iterable[GivenUp]
) -> None:
    """Tell the log and observers which tasks of a worker nobody is to run again."""
    for one in given_up:
        logger.error(
            "task %s (%s) was given up (%s); %s",
            one.id,
            one.task or "unknown",
            one.reason,
            WHAT_TO_DO,
        )
        if observers is not None:
            observers.emit(
                TaskGivenUp(observers.queue, one.task, one.id, worker, one.reason)
            )


def _reassign(
    keys: QueueKeys,
    settings: QueueSettings,
    seen: Survey,
    observers: TaskObservers | None,
) -> Flow[int]:
    returned = 0
    for worker in seen.dead:
        call = upkeep_calls.reassign(keys, settings, worker, most=_BATCH)
        rescued = yield from ask(call)
        returned += max(0, rescued.returned)
        tell_rescued(observers, worker, rescued, "its lease has ended")
    return returned


def _rebalance(
    keys: QueueKeys, seen: Survey, observers: TaskObservers | None
) -> Flow[int]:
    """Feed starving workers, the first of them from the richest deque."""
    fed = 0
    candidates = tuple(worker for worker in seen.living if worker not in seen.rich)
    if candidates:
        starving = yield from ask(upkeep_calls.idle(keys, candidates))
        for victim, thief in zip(seen.rich, starving, strict=False):
            moved = yield from ask(steal(keys, victim, thief, wake=True))
            fed += moved
            if moved and observers is not None:
                event = TasksStolen(observers.queue, thief, victim, moved)
                observers.emit(event)
    return fed


def _is_due(seen: Survey, duty: str, every_ms: int) -> bool:
    return seen.now_ms - seen.done_at.get(duty, 0) >= every_ms
