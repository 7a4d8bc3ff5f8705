"""States, results and cancellations of tasks.

Outcomes are published to whoever waits for them; since a message can be lost, waiters
also look now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from workstealing._logs import BackgroundLogger
from workstealing.client.event_watch import TaskSnapshot
from workstealing.drivers.memory_addresses import is_in_memory
from workstealing.errors import (
    RedisUnavailable,
    ResultTimeout,
    TaskDead,
    TaskNotFound,
    WorkStealingError,
)
from workstealing.queue import (
    inspection_calls,
    limit_calls,
    listing_calls,
    producer_calls,
)
from workstealing.queue.inspection_calls import Located, Trace, locate, waits_for
from workstealing.queue.keys import QueueKeys
from workstealing.queue.producer_calls import Cancelled
from workstealing.queue.steps import (
    AwaitOutcome,
    Call,
    Flow,
    Pipeline,
    Sleep,
    Subscribe,
    Subscription,
    ask,
)
from workstealing.queue.task_output_calls import read_note
from workstealing.tasks.context import Progress
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.outcome import State, TaskOutcome, TaskState

if TYPE_CHECKING:
    from workstealing.client.queue_internals import QueueInternals

__all__ = ("QueueOutcomes",)

logger = BackgroundLogger(__name__)

# How often waiters look, in case the message with the outcome was lost.
_LOOK_SECONDS = 1.0
# How soon a server that is away is tried again.
_RETURN_SECONDS = 0.1
# Outcomes per call, and how long to wait between two looks for each that is missing.
_OUTCOMES = 100
_LOOK_COST_SECONDS = 0.00002


class QueueOutcomes:
    """Looks at tasks of one queue, waits for them and cancels them."""

    def __init__(self, internals: QueueInternals[Any]) -> None:
        self._internals = internals

    def state(self, task_id: str) -> Flow[TaskState]:
        """Return where a task is."""
        keys = yield from self._internals.keys_of(task_id)
        found = yield from locate(keys, task_id)
        state = _state(found)
        if found.place is not State.WAITING or not found.trace.line:
            return state
        held = yield from ask(limit_calls.held_back(keys, task_id))
        return replace(state, reason=held.reason)

    def result(
        self,
        task_id: str,
        timeout: float | None,
        read: Callable[[msgspec.Raw], Any],
        whole: float | None = None,
    ) -> Flow[Any]:
        """Wait for a task to end; return its result as *read* reads it.

        If the server cannot be reached, the wait goes on until the timeout. A timeout
        error names *whole*, if the caller spent a part of its time before.
        """
        end = None if timeout is None else self._internals.clock.monotonic() + timeout
        prefix = self._internals.keys.channel("")
        own: Subscription | None = None
        absence: RedisUnavailable | None = None
        while True:
            found, is_requested = None, False
            try:
                if own is None:
                    own = yield Subscribe(prefix, task_id)
                    is_requested = own.is_requested
                if not is_requested:
                    found = yield from self._look(task_id, own.channel)
                left = self._left(end, _LOOK_SECONDS)
                if not found and left > 0.0:
                    found = yield AwaitOutcome(prefix, task_id, left)
                absence = None
            except RedisUnavailable as error:
                if absence is None:
                    logger.warning(
                        "the server is not available; still waiting for task %s: %s",
                        task_id,
                        error,
                    )
                own, absence = None, error
                yield Sleep(max(0.0, self._left(end, _RETURN_SECONDS)))
            if found and not (is_requested and _may_be_replayed(found)):
                return TaskOutcome.read(found).value(task_id, read)
            if self._left(end, _LOOK_SECONDS) <= 0.0:
                waited = f"{whole or round(timeout or 0, 3):g} s"
                raise (yield from self._overdue(task_id, waited, absence))

    def _left(self, end: float | None, most: float) -> float:
        return (
            most if end is None else min(most, end - self._internals.clock.monotonic())
        )

    def _overdue(
        self, task_id: str, waited: str, absence: RedisUnavailable | None
    ) -> Flow[ResultTimeout]:
        """Return the error that says where a task is, or why that is not known."""
        if absence is None:
            try:
                keys = yield from self._internals.keys_of(task_id)
                found = yield from locate(keys, task_id)
                words = f"task {task_id} did not end within {waited}: it is"
                words += f" {_state(found)}"
                now_ms = found.trace.now_ms
                if found.place is not None and not (yield from self._living(now_ms)):
                    words += f"; {self._nobody_works()}"
                return ResultTimeout(words)
            except RedisUnavailable as error:
                absence = error
        overdue = ResultTimeout(
            f"no outcome of task {task_id} arrived within {waited}, and the server"
            f" is not available: {absence}"
        )
        overdue.__cause__ = absence
        return overdue

    def _nobody_works(self) -> str:
        if is_in_memory(self._internals.source.redis):
            return "the queue is in memory: call drain(), which runs what waits"
        return (
            f"no worker of queue '{self._internals.full_name}' is alive: start one, or"
            " see that it has the same Redis, queue and run"
        )

    def _living(self, now_ms: int) -> Flow[int]:
        """Count the workers of all shards."""
        living = 0
        for keys in (yield from self._internals.shards.known()):
            living += yield from ask(listing_calls.count_living(keys, now_ms))
        return living

    def _look(self, task_id: str, channel: str) -> Flow[bytes]:
        """Return an outcome if there is one; else ask for it on a channel."""
        shards = self._internals.shards
        keys = yield from self._internals.keys_of(task_id)
        seen = yield from ask(producer_calls.request_outcome(keys, task_id, channel))
        if seen.verdict == "unknown":
            before = len(shards.all)
            if len((yield from shards.known())) > before:
                return (yield from self._look(task_id, channel))
        _refuse_missing(task_id, seen)
        return seen.outcome

    def results(
        self,
        ids: Sequence[str],
        timeout: float | None,
        readers: Mapping[str, Callable[[msgspec.Raw], Any]],
        *,
        is_tolerant: bool,
    ) -> Flow[dict[str, Any]]:
        """Wait for many tasks; return their results, and errors if *is_tolerant*."""
        end = None if timeout is None else self._internals.clock.monotonic() + timeout
        found: dict[str, Any] = {}
        waiting = list(dict.fromkeys(ids))
        while True:
            seen = yield from self._read_outcomes(waiting)
            for task_id, outcome in seen.items():
                try:
                    found[task_id] = _result(task_id, outcome, readers[task_id])
                except WorkStealingError as error:
                    if not is_tolerant:
                        raise
                    found[task_id] = error
            waiting = [task_id for task_id in waiting if task_id not in found]
            if not waiting:
                return found
            if self._left(end, _LOOK_SECONDS) <= 0.0:
                waited = f"{timeout:g} s"
                if not is_tolerant:
                    raise (yield from self._overdue(waiting[-1], waited, None))
                for task_id in waiting:
                    words = f"task {task_id} did not end within {waited}"
                    found[task_id] = ResultTimeout(words)
                return found
            # To look at all of them without a pause would cost the server too much.
            yield Sleep(max(0.0, self._left(end, len(waiting) * _LOOK_COST_SECONDS)))
            yield from self.wait_for_end(waiting[-1], self._left(end, _LOOK_SECONDS))

    def _read_outcomes(
        self, ids: Sequence[str]
    ) -> Flow[dict[str, producer_calls.RequestedOutcome]]:
        """Read those that have ended; none if the server is away."""
        try:
            found = yield from self._internals.shards.found(ids)
            chunks = [
                (keys, some[first : first + _OUTCOMES])
                for keys, some in found
                for first in range(0, len(some), _OUTCOMES)
            ]
            calls = [producer_calls.read_outcomes(*chunk) for chunk in chunks]
            answers: list[list[producer_calls.RequestedOutcome]] = yield Pipeline(calls)
        except RedisUnavailable:
            yield Sleep(_RETURN_SECONDS)
            return {}
        names = chain.from_iterable(some for _, some in chunks)
        seen = zip(names, chain.from_iterable(answers), strict=True)
        return {name: one for name, one in seen if one.verdict != "pending"}

    def snapshot(self, task_id: str, envelope: bytes) -> Flow[TaskSnapshot]:
        """Return the state and progress of a task, even if it has just ended."""
        keys = yield from self._internals.keys_of(task_id)
        found = yield from locate(keys, task_id)
        progress, envelope = found.progress, found.trace.envelope or envelope
        if found.place is None and envelope:
            note = read_note(keys, task_id, envelope, "progress")
            shown = yield from ask(note)
            progress = Progress.read_or_none(shown)
        return TaskSnapshot(_state(found), progress, envelope)

    def wait_for_end(self, task_id: str, seconds: float) -> Flow[None]:
        """Wait until the task ends, for so many seconds at most."""
        prefix = self._internals.keys.channel("")
        try:
            keys = yield from self._internals.keys_of(task_id)
            own: Subscription = yield Subscribe(prefix, task_id)
            call = producer_calls.request_outcome(keys, task_id, own.channel)
            seen = yield from ask(call)
            if seen.verdict == "requested" and seconds > 0.0:
                yield AwaitOutcome(prefix, task_id, seconds)
        except RedisUnavailable:
            yield Sleep(max(0.0, min(seconds, _RETURN_SECONDS)))

    def cancel(self, task_id: str) -> Flow[Cancelled]:
        """Cancel a task, even if it moves from worker to worker meanwhile."""
        keys = yield from self._internals.keys_of(task_id)
        while True:
            seen = yield from ask(inspection_calls.trace(keys, task_id))
            verdict = yield from ask(self.cancelling(keys, task_id, seen))
            if verdict != "moved":
                return verdict

    def cancelling(self, keys: QueueKeys, task_id: str, seen: Trace) -> Call[Cancelled]:
        """Return the call that cancels a task where it was seen."""
        outcome = TaskOutcome(
            state="cancelled", reason="by its caller", task=_ability(seen.envelope)
        )
        return producer_calls.cancel(
            keys,
            self._internals.settings,
            task_id,
            seen.worker,
            outcome.encode(),
            needs=seen.needs,
        )


def _result(
    task_id: str,
    seen: producer_calls.RequestedOutcome,
    read: Callable[[msgspec.Raw], Any],
) -> Any:
    _refuse_missing(task_id, seen)
    return TaskOutcome.read(seen.outcome).value(task_id, read)


def _may_be_replayed(found: bytes) -> bool:
    """Whether an outcome that was published before the wait may be out of date.

    A dead letter may have been replayed since.
    """
    return TaskOutcome.read(found).state in ("dead", "failed")


def _refuse_missing(task_id: str, seen: producer_calls.RequestedOutcome) -> None:
    if seen.verdict == "unknown":
        raise TaskNotFound.of(task_id)
    if seen.verdict == "lost":
        raise TaskDead(task_id, "the reason is lost, since its outcome has expired")


def _ability(envelope: bytes) -> str:
    read = Envelope.read_or_none(envelope)
    return "" if read is None else read.ability


def _state(found: Located) -> TaskState:
    seen, place = found.trace, found.place
    if place is None:
        return TaskOutcome.read(seen.outcome).as_state()
    since_ms, reason = None, ""
    if place is State.DEAD:
        since_ms = seen.dead_at_ms
    elif place is State.DELAYED:
        since_ms = seen.due_ms
    elif place is State.PARKED:
        reason = f"no worker can run {seen.needs}"
    elif seen.is_step:
        reason = waits_for(seen)
    elif place is State.PAUSED:
        since_ms = seen.paused_since_ms
        reason = seen.pauses.reason(seen.name) or f"task {seen.name} is being resumed"
    elif place is State.RUNNING:
        since_ms = found.begun_at_ms
        reason = "asked to stop" if seen.is_cancelling else ""
    attempt = 1 if place is State.UNKNOWN else seen.attempts + 1
    return TaskState(place, seen.worker, since_ms, reason, attempt, found.progress)
