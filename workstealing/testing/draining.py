"""Runs the tasks of queues in memory, in the caller's thread.

The worker is the real one, with its engine, loop and runner. Only its slot differs: it
records what ran, and stops the worker where it would otherwise rest. One worker leaves
before the time is moved and another joins after that, so that no lease runs out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from threading import Lock
from typing import Any, Literal

from workstealing.chance import SYSTEM_CHANCE
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.drivers.sync_driver import Driver
from workstealing.errors import ConfigurationError
from workstealing.queue import upkeep_calls, worker_calls
from workstealing.queue.steps import RedisCommand
from workstealing.recruiting.job import Duty
from workstealing.tasks.attempt import Attempt, Delivery, Ending, Report, Verdict
from workstealing.tasks.envelope import Envelope
from workstealing.testing.memory_server import MemoryServer
from workstealing.testing.submitted_tasks import own_arguments
from workstealing.workers.engine import WorkerEngine
from workstealing.workers.identity import Phase, identity_of
from workstealing.workers.inline_slot import InlineSlot
from workstealing.workers.slots import SlotParts
from workstealing.workers.upkeep import upkeep

__all__ = ("Disturbance", "MemoryWorkers", "Ran", "SeenOutcome", "Until", "WorkerDied")

Until = Literal["now", "all"]
"""How long to go on: while something can run now, or until nothing is left."""

SeenOutcome = Literal[Verdict, "crashed", "parked", "lost"]
"""How an attempt ended, as a test sees it."""

_POOL = "memory"
_MS = 1_000_000
# How long live workers have to renew their leases after nobody has looked for a while.
_GRACE_NS = 3_000 * _MS


class WorkerDied(BaseException):
    """Raised in a task of a queue in memory: its worker is gone, and reports nothing.

    Others take over its tasks when its lease ends. `crash()` raises it at the beginning
    or the end of a task; what a task calls may raise it anywhere else.
    """


@dataclass(frozen=True, slots=True)
class Ran:
    """One attempt at a task, as `drain()` saw it."""

    task: str
    """The name of the task; empty if its envelope cannot be read."""
    id: str
    attempt: int
    outcome: SeenOutcome
    """done, failed, retry, back (snoozed), cancelled, expired, dead, forged; crashed:
    its worker died; parked: no worker knows the task; lost: its lease ended first."""
    worker: str
    queue: str
    arguments: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    error: BaseException | None = None
    """What it raised, with its traceback."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A crash or a theft that `crash()` or `steal()` ordered for an attempt."""

    kind: Literal["crash", "steal"]
    task: str | None
    """The name of the task; None means any task."""
    at: Literal["begin", "end"] = "begin"


class MemoryWorkers:
    """Workers for queues in memory, one after the other."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server
        self._clock = server.clock
        self.queues: list[TaskQueue] = []
        self.disturbances: list[Disturbance] = []
        """Those that have not happened yet, in order."""
        self._numbers = count()
        self._crashed: set[str] = set()
        self._ran: list[Ran] = []
        self._most = 0
        self._draining = Lock()

    def run(self, until: Until, most: int) -> list[Ran]:
        """Run what can run; with "all", move the time on to what is due later."""
        if not self._draining.acquire(blocking=False):
            raise ConfigurationError(
                "drain() is running already: a task called it, or another thread did."
                " Call it from one place at a time"
            )
        try:
            self._ran, self._most = [], most
            self._run_due()
            while until == "all" and (moment := self._next_moment()) is not None:
                self.move_to(moment)
                self._run_due()
            return self._ran
        finally:
            self._draining.release()

    def move_to(self, time_ns: int) -> None:
        """Move the time, as if the queues had had workers all along."""
        parts = [internals_of(queue) for queue in self.queues]
        for one in parts:
            if one.schedules.has_code and time_ns >= self._clock.time_ns():
                one.driver.run(one.schedules.declare())
        # Upkeep that has not looked at leases for a while gives live workers time to
        # renew them. So it looks shortly before the end.
        if time_ns - _GRACE_NS > self._clock.time_ns():
            self._clock.move_to(time_ns - _GRACE_NS)
            for one in parts:
                for keys in one.shards.all:
                    one.driver.call(upkeep_calls.survey(keys, one.settings))
        self._clock.move_to(time_ns)

    def _run_due(self) -> None:
        while True:
            before = len(self._ran)
            for queue in self.queues:
                while self._work(queue, self._new_name()):
                    pass
            # A task may have submitted one to a queue that was looked at before.
            if len(self.queues) == 1 or len(self._ran) == before:
                return

    def _new_name(self) -> str:
        return f"{_POOL}.{next(self._numbers)}"

    def _work(
        self, queue: TaskQueue, name: str, incarnation: str | None = None
    ) -> bool:
        """Let one worker run all that it finds; return whether another one is needed.

        One is, if this worker died or if a task has moved the time.
        """
        began_ns = self._clock.time_ns()
        self._keep_up(queue)
        thief = self._expect_thief(queue)
        engine: WorkerEngine[_DrainSlot] = WorkerEngine(
            queue,
            name,
            partial(
                _DrainSlot,
                queue=queue.name,
                disturb=partial(self._disturb, thief),
                note=self._note,
                nothing_left=lambda: engine.enter(Phase.STOPPING),
            ),
            # Only the task that runs is lost with its worker.
            batch=1,
            # With shards, it looks at all of them before it rests.
            until_empty=internals_of(queue).shards.are_several,
            chance=SYSTEM_CHANCE,
            clock=self._clock,
            incarnation=incarnation,
            reraised=(KeyboardInterrupt, WorkerDied),
        )
        try:
            engine.start()
            return self._has_died(engine, name) or self._clock.time_ns() != began_ns
        finally:
            engine.close()
            if thief is not None:
                thief.leave()

    def _has_died(self, engine: WorkerEngine[_DrainSlot], name: str) -> bool:
        try:
            engine.loop.run()
        except WorkerDied:
            self._crashed.add(name)
            return True
        except BaseException:
            engine.loop.leave()
            raise
        return False

    def _keep_up(self, queue: TaskQueue) -> None:
        """Do all upkeep that is due; a worker alone does only a part of it."""
        one = internals_of(queue)
        for keys in one.driver.run(one.shards.known()):
            done = Duty.MORE
            while done is not Duty.DISMISSED:
                done = one.driver.run(
                    upkeep(keys, one.settings, "worker", one.schedules, one.observers)
                )

    def _note(self, ran: Ran) -> None:
        self._ran.append(ran)
        if len(self._ran) > self._most:
            raise ConfigurationError(
                f"drain() made more than {self._most:,} attempts: does '{ran.task}'"
                " submit itself, or retry forever? If so many attempts are right, pass"
                " a larger most="
            )

    def _disturb(self, thief: _Thief | None, attempt: Attempt) -> bool:
        """Disturb an attempt as ordered; return whether it crashes at its end."""
        name, ends_in_a_crash = attempt.definition.name, False
        for one in tuple(self.disturbances):
            if one.task in (None, name) and (one.kind == "crash" or thief is not None):
                self.disturbances.remove(one)
                if one.kind == "steal":
                    assert thief is not None
                    thief.work()
                elif one.at == "begin":
                    raise WorkerDied
                else:
                    ends_in_a_crash = True
                break
        return ends_in_a_crash

    def _expect_thief(self, queue: TaskQueue) -> _Thief | None:
        """Let a second worker join, so that the first one shares its tasks with it."""
        if not any(one.kind == "steal" for one in self.disturbances):
            return None
        return _Thief(queue, self._new_name(), self._work)

    def _next_moment(self) -> int | None:
        """Return when something is due; None if only schedules are, or nothing."""
        now_ms = self._clock.time_ns() // _MS
        moments: list[float] = []
        ticks: list[float] = []
        for queue in self.queues:
            driver = internals_of(queue).driver
            for keys in internals_of(queue).shards.all:
                for key, found in (
                    (keys.later, moments),
                    (keys.refills, moments),
                    (keys.ticks, ticks),
                ):
                    found += _first_after(driver, key, now_ms)
                for worker in self._crashed:
                    moments += _lease_after(driver, keys.workers, worker, now_ms)
        if not moments:
            return None
        return round(min(moments + ticks)) * _MS


class _Thief:
    """A second worker of a queue, which works while the first one is busy."""

    def __init__(
        self, queue: TaskQueue, name: str, run: Callable[[TaskQueue, str, str], bool]
    ) -> None:
        self._queue, self._run = queue, run
        self._is_there = True
        self._identity = one = identity_of(queue, name)
        internals_of(queue).driver.call(
            worker_calls.join(
                one.keys, one.settings, one.name, one.incarnation, one.description
            )
        )

    def work(self) -> None:
        """Take all tasks, also from the deque of the first worker."""
        if self._identity.shards.are_several:
            # It joins again, in the shard in which the other worker is.
            self.leave()
        self._is_there = False
        self._run(self._queue, self._identity.name, self._identity.incarnation)

    def leave(self) -> None:
        """Leave the queue, unless it has worked: then it has left, or died."""
        if self._is_there:
            one, internals = self._identity, internals_of(self._queue)
            internals.driver.call(
                worker_calls.leave(one.keys, one.name, one.incarnation, final=True)
            )


class _DrainSlot(InlineSlot):
    """The slot of a worker that stops where any other worker would rest.

    Args:
        parts: as of any slot.
        queue: the name of the queue.
        disturb: is called before each attempt; returns whether it crashes at its end.
        note: is called after each attempt.
        nothing_left: is called instead of a rest.
    """

    def __init__(
        self,
        parts: SlotParts,
        *,
        queue: str,
        disturb: Callable[[Attempt], bool],
        note: Callable[[Ran], None],
        nothing_left: Callable[[], None],
    ) -> None:
        super().__init__(parts)
        self._queue = queue
        self._disturb = disturb
        self._note = note
        self._nothing_left = nothing_left
        self._begun: Attempt | None = None
        self._value: Any = None
        self._error: BaseException | None = None

    def work(self, seconds: float = math.inf) -> None:  # noqa: ARG002 - no wait
        """Run what was taken."""
        in_flight = self._parts.in_flight
        in_flight.slot_is_busy()
        try:
            while (delivery := in_flight.begin()) is not None:
                self._run(delivery)
        finally:
            in_flight.slot_is_idle()

    def rest(self, seconds: float) -> None:  # noqa: ARG002 - nobody wakes it
        """Stop the worker, since there is nothing left to run."""
        self._nothing_left()

    def _run(self, delivery: Delivery) -> None:
        parts = self._parts
        self._begun = self._value = self._error = None
        try:
            ending: Ending
            if delivery.id in parts.in_flight.cancelled:
                ending = parts.runner.cancelled(delivery)
            else:
                ending = parts.runner.execute(
                    delivery, self._call, self._event_loop.complete
                )
        except WorkerDied:
            # A dead worker sends no heartbeats either.
            if self._heartbeat is not None:
                self._heartbeat.stop()
            self._note(self._as_seen(delivery, "crashed"))
            raise
        # As if it had taken a whole second: the worker then reports it before it takes
        # the next task.
        parts.in_flight.finish(delivery, ending, 1.0)
        outcome: SeenOutcome = "parked" if ending else "lost"
        if isinstance(ending, Report):
            outcome = ending.verdict
        self._note(self._as_seen(delivery, outcome))

    def _call(self, attempt: Attempt) -> Any:
        self._begun = attempt
        ends_in_a_crash = False
        try:
            ends_in_a_crash = self._disturb(attempt)
            self._value = super()._call(attempt)
        except BaseException as error:
            self._error = error
            if ends_in_a_crash and isinstance(error, Exception):
                raise WorkerDied from error
            raise
        if ends_in_a_crash:
            raise WorkerDied
        return self._value

    def _as_seen(self, delivery: Delivery, outcome: SeenOutcome) -> Ran:
        attempt, arguments = self._begun, dict[str, Any]()
        if attempt is not None:
            arguments = own_arguments(attempt.definition, attempt.arguments)
        return Ran(
            _name_of(delivery) if attempt is None else attempt.definition.name,
            delivery.id,
            delivery.attempt,
            outcome,
            self._parts.worker,
            self._queue,
            arguments,
            self._value,
            self._error,
        )


def _first_after(driver: Driver, key: str, now_ms: int) -> list[float]:
    """Return the first score of a sorted set that is in the future, if there is one."""
    words = ("ZRANGE", key, f"({now_ms}", "+inf", "BYSCORE", "LIMIT", 0, 1)
    found = driver.call(RedisCommand((*words, "WITHSCORES"), list))
    return [float(found[1])] if found else []


def _lease_after(driver: Driver, key: str, worker: str, now_ms: int) -> list[float]:
    """Return the end of the lease of a worker, if it is in the future."""
    end = driver.call(RedisCommand(("ZSCORE", key, worker), lambda reply: reply))
    return [float(end)] if end is not None and float(end) > now_ms else []


def _name_of(delivery: Delivery) -> str:
    read = Envelope.read_or_none(delivery.envelope)
    return "" if read is None else read.name
