"""A process that runs the worker in a story: the real engine, and a slot that watches.

It runs the one task that the rehearsal is about, and ends when that has ended. Tasks
that this one submits are put aside: they are compared, not run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from workstealing.client.queue_internals import internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.queue.producer_calls import read_outcomes
from workstealing.rehearsing.fault_injector import FaultInjector, HeldClock
from workstealing.rehearsing.process_messages import ProcessChannel, TaskSetup
from workstealing.rehearsing.stories import StoryPoint
from workstealing.tasks.attempt import Attempt, Ending, Report
from workstealing.tasks.submission import ClientContext, SubmitOptions
from workstealing.workers.engine import WorkerEngine
from workstealing.workers.identity import NameTaken, Phase
from workstealing.workers.inline_slot import InlineSlot
from workstealing.workers.slots import SlotParts

__all__ = ("WorkerSetup", "run_worker")

_WORKER = "rehearsal.0"
_URGENT = 0
_POLL_SECONDS = 0.005
_ASIDE_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What one worker does in a story."""

    task_id: str
    submits: bool
    """Whether it submits the task first; otherwise another worker did."""
    point: StoryPoint | None = None
    kills: bool = False


def run_worker(
    worker: WorkerSetup, setup: TaskSetup, queue: TaskQueue, channel: ProcessChannel
) -> None:
    """Work until the task has ended, and say so; or be killed on the way."""
    clock = HeldClock()
    definition = queue.registry.find(setup.task, setup.version)
    internals = internals_of(queue)
    lease = internals.settings.lease_ms / 1000
    injector = FaultInjector(
        definition.function.__module__.partition(".")[0],
        worker.point,
        kills=worker.kills,
        channel=channel,
        clock=clock,
        lease=lease,
    )
    if worker.submits:
        # Limits, keys and expiry would only make the rehearsal wait.
        plain = replace(definition, line_names=None, unique=None, expires=None)
        context = ClientContext(setup.principal, setup.roles)
        options = SubmitOptions(priority=_URGENT, context=context, again=True)
        payloads, ids = [setup.payload.encode()], [worker.task_id]
        internals.driver.run(internals.submit(plain, payloads, options, ids))

    def has_ended() -> bool:
        (seen,) = internals.driver.call(read_outcomes(internals.keys, [worker.task_id]))
        return seen.verdict != "pending"

    engine: WorkerEngine[_StorySlot] = WorkerEngine(
        queue,
        # Under the name of the one before: its task is taken over at once.
        _WORKER,
        partial(
            _StorySlot,
            task_id=worker.task_id,
            injector=injector,
            has_ended=has_ended,
            stop=lambda: engine.enter(Phase.STOPPING),
        ),
        batch=1,
        until_empty=False,
        chance=_NoJitter(),
        clock=clock,
    )
    try:
        engine.start()
        engine.run()
    except NameTaken:
        # It was held for so long that the other one has the task now.
        pass
    finally:
        engine.close()
    channel.send(injector.findings)


class _StorySlot(InlineSlot):
    """The slot of a worker that has one task to run."""

    def __init__(
        self,
        parts: SlotParts,
        *,
        task_id: str,
        injector: FaultInjector,
        has_ended: Callable[[], bool],
        stop: Callable[[], object],
    ) -> None:
        super().__init__(parts, began=self._watch)
        self._task_id = task_id
        self._injector = injector
        self._has_ended = has_ended
        self._stop = stop

    def start(self, heartbeat: Callable[[], None]) -> None:
        """Let a process that is held be silent."""
        super().start(self._injector.cut_off_at_point(heartbeat))

    def work(self, seconds: float = math.inf) -> None:  # noqa: ARG002 - no wait
        """Run the task; put all others aside."""
        parts = self._parts
        in_flight = parts.in_flight
        in_flight.slot_is_busy()
        try:
            while (delivery := in_flight.begin()) is not None:
                ending: Ending
                if delivery.id != self._task_id:
                    ending = Report(
                        delivery.id, delivery.token, "back", delay_ms=_ASIDE_MS
                    )
                else:
                    ending = parts.runner.execute(
                        delivery, self._call, self._event_loop.complete
                    )
                    self._leave(ending)
                in_flight.finish(delivery, ending, 1.0)
        finally:
            in_flight.slot_is_idle()

    def rest(self, seconds: float) -> None:
        """End if somebody else has ended the task; look again soon otherwise."""
        if self._has_ended():
            self._stop()
        else:
            time.sleep(min(seconds, _POLL_SECONDS))

    def _watch(self, attempt: Attempt) -> None:
        self._injector.began(attempt)

    def _leave(self, ending: Ending) -> None:
        verdict: Any = ending.verdict if isinstance(ending, Report) else "lost"
        self._injector.ended(is_done=verdict == "done")
        if verdict not in ("retry", "back"):
            self._stop()


class _NoJitter:
    """Has a task that raised be tried again at once, whatever its policy draws."""

    def random(self) -> float:
        """Return the shortest wait."""
        return 0.0
