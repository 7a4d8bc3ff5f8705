"""What a queue does for those who give it work: the one body of both faces."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from workstealing.clock import Clock
from workstealing.errors import (
    ConfigurationError,
    PayloadTooLarge,
    QueueClosed,
    QueueFull,
    RedisUnavailable,
    ResultTimeout,
    TaskDead,
    TaskNotFound,
)
from workstealing.queue import producing, reading
from workstealing.queue.call import Flow, Hear, Listen, Nap, ask
from workstealing.queue.keys import QueueKeys
from workstealing.queue.locating import Located, locate
from workstealing.queue.producing import Cancelled
from workstealing.queue.reading import Counts
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.checking import checked_seconds, checked_whole
from workstealing.tasks.envelope import PRIORITIES, Envelope, Letterhead
from workstealing.tasks.naming import checked_id, new_ids
from workstealing.tasks.outcome import State, TaskOutcome, TaskState
from workstealing.tasks.task import TaskDefinition

__all__ = ("Giving", "SubmitOptions")

_CHUNK = 1000
# Outcomes are told; this is how often we look all the same.
_LOOK_SECONDS = 1.0
_ROUGHLY_DONE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """When and how one submission is to be run."""

    id: str | None = None
    """The dedupe key: an id that is known already is not submitted again."""
    priority: int | None = None
    """0 is urgent, 2 is whenever; the task's own unless given."""
    delay: float | timedelta | None = None
    """Seconds from now."""
    at: datetime | None = None
    """Or else when; with a time zone."""

    def __post_init__(self) -> None:
        if self.id is not None:
            checked_id(self.id)
        if self.priority is not None:
            checked_whole(self.priority, "priority", 0, PRIORITIES - 1)
        if self.delay is not None and self.at is not None:
            raise ConfigurationError("give delay= or at=, not both")
        if self.at is not None and self.at.tzinfo is None:
            raise ConfigurationError(
                "at= needs a time zone: datetime.now(timezone.utc) has one"
            )

    @property
    def delay_ms(self) -> int:
        """Milliseconds from now; 0 is at once."""
        if self.delay is None:
            return 0
        return round(checked_seconds(self.delay, "delay", zero=True) * 1000)

    @property
    def due_ms(self) -> int:
        """Milliseconds since 1970; 0 is at once."""
        if self.at is None:
            return 0
        return max(1, round(self.at.astimezone(timezone.utc).timestamp() * 1000))


class Giving:
    """Submits, looks, waits and cancels, as flows over one queue."""

    def __init__(self, keys: QueueKeys, settings: QueueSettings, clock: Clock) -> None:
        self.keys = keys
        self.settings = settings
        self._clock = clock

    def submit(
        self,
        definition: TaskDefinition,
        payloads: Sequence[bytes],
        options: SubmitOptions,
        ids: Sequence[str] | None = None,
    ) -> Flow[list[str]]:
        """Put tasks into the queue, a round trip per thousand; return their ids."""
        priority = definition.priority
        if options.priority is not None:
            priority = options.priority
        largest = max(map(len, payloads), default=0)
        if largest > self.settings.max_payload:
            raise PayloadTooLarge(definition.name, largest, self.settings.max_payload)
        if ids is None:
            names = new_ids(len(payloads))
        else:
            names = [checked_id(name) for name in ids]
        if len(names) != len(payloads):
            raise ConfigurationError(f"{len(names)} ids for {len(payloads)} tasks")
        envelope = Envelope(
            v=1,
            name=definition.name,
            version=definition.version,
            priority=priority,
            at=time.time_ns() // 1_000_000,
            payload=msgspec.Raw(b"{}"),
        )
        around = Letterhead.of(envelope).around
        for start in range(0, len(payloads), _CHUNK):
            end = start + _CHUNK
            call = producing.submit(
                self.keys,
                self.settings,
                list(
                    zip(names[start:end], map(around, payloads[start:end]), strict=True)
                ),
                priority=priority,
                due_ms=options.due_ms,
                delay_ms=options.delay_ms,
            )
            submitted = yield from ask(call)
            if submitted.verdict == "full":
                raise QueueFull(
                    f"the queue holds {self.settings.max_length} tasks at most;"
                    f" {start} of {len(payloads)} were taken"
                )
            if submitted.verdict == "closed":
                raise QueueClosed("the queue was closed: it takes no more input")
        return names

    def state(self, task_id: str) -> Flow[TaskState]:
        """Tell where a task is."""
        return _state((yield from locate(self.keys, task_id)))

    def result(
        self, task_id: str, timeout: float | None, read: Callable[[msgspec.Raw], Any]
    ) -> Flow[Any]:
        """Wait for a task to end, by push with a look as the safety net."""
        end = None if timeout is None else self._clock.monotonic() + timeout
        prefix = self.keys.channel("")
        channel: str = yield Listen(prefix)
        while True:
            seen = yield from ask(reading.trace(self.keys, task_id, channel=channel))
            told = seen.outcome
            if not told and not seen.envelope:
                raise TaskNotFound(
                    f"there is no task {task_id}, or its outcome has expired"
                )
            if not told and seen.dead_at_ms is not None:
                raise TaskDead(task_id, "why is not known, its outcome has expired")
            if not told:
                left = _LOOK_SECONDS
                if end is not None:
                    left = min(left, end - self._clock.monotonic())
                if left > 0.0:
                    try:
                        told = yield Hear(prefix, task_id, left)
                    except RedisUnavailable:
                        # Only the subscription may be gone; if it is all, this raises.
                        channel = yield Listen(prefix)
            if told:
                outcome = TaskOutcome.read(told)
                problem = outcome.problem(task_id)
                if problem is not None:
                    raise problem
                return read(outcome.result)
            if end is not None and self._clock.monotonic() >= end:
                state = yield from self.state(task_id)
                raise ResultTimeout(
                    f"task {task_id} did not end within {timeout:g} s: it is {state}"
                )

    def cancel(self, task_id: str) -> Flow[Cancelled]:
        """Cancel a task; follow it if it moves from worker to worker meanwhile."""
        outcome = TaskOutcome(state="cancelled", reason="by its caller").encode()
        while True:
            seen = yield from ask(reading.trace(self.keys, task_id))
            call = producing.cancel(
                self.keys, self.settings, task_id, seen.worker, outcome
            )
            verdict = yield from ask(call)
            if verdict != "moved":
                return verdict

    def wait(self, timeout: float | None) -> Flow[Counts]:
        """Wait until nothing is left that wants to be run."""
        end = None if timeout is None else self._clock.monotonic() + timeout
        while True:
            seen = yield from ask(reading.counts(self.keys))
            if seen.unfinished <= 0:
                return seen
            if end is not None and self._clock.monotonic() >= end:
                raise ResultTimeout(
                    f"after {timeout:g} s, {seen.unfinished} tasks are not finished"
                )
            yield Nap(_ROUGHLY_DONE_SECONDS)


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
    elif place is State.RUNNING:
        since_ms = found.begun_at_ms
        reason = "asked to stop" if seen.is_cancelling else ""
    attempt = 1 if place is State.UNKNOWN else seen.attempts + 1
    return TaskState(place, seen.worker, since_ms, reason, attempt)
