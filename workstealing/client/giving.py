"""What a queue does for those who give it work: the one body of both faces."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from workstealing.client.channel import follow, logs
from workstealing.clock import Clock
from workstealing.errors import (
    BadEnvelope,
    ConfigurationError,
    PayloadTooLarge,
    QueueClosed,
    QueueFull,
    RedisUnavailable,
    ResultTimeout,
    TaskDead,
    TaskNotFound,
    UnknownEnvelope,
)
from workstealing.queue import producing, reading
from workstealing.queue.call import (
    Call,
    Expect,
    Expected,
    Flow,
    Hear,
    Listen,
    Nap,
    Volley,
    ask,
)
from workstealing.queue.keys import QueueKeys
from workstealing.queue.locating import Located, locate
from workstealing.queue.producing import Cancelled, Submitted
from workstealing.queue.reading import Counts
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.admission import Admission
from workstealing.tasks.calling import NOBODY, Callee, Channel, ClientContext
from workstealing.tasks.checking import checked_seconds, checked_whole
from workstealing.tasks.envelope import LATEST_MS, PRIORITIES, Envelope, Letterhead
from workstealing.tasks.logging import LogRecord
from workstealing.tasks.naming import checked_id, new_ids
from workstealing.tasks.outcome import State, TaskOutcome, TaskState
from workstealing.tasks.signing import LIFETIME_MS
from workstealing.tasks.task import TaskDefinition

__all__ = ("Giving", "SubmitOptions", "written")

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
    context: ClientContext = NOBODY
    """On whose behalf, and how."""
    log: bool = False
    """Keep what the task logs and prints."""
    deadline_ms: int | None = None
    """Milliseconds since 1970: not begun later; the context's own unless given."""

    def __post_init__(self) -> None:
        if self.id is not None:
            checked_id(self.id)
        if self.priority is not None:
            checked_whole(self.priority, "priority", 0, PRIORITIES - 1)
        if self.delay is not None and self.at is not None:
            raise ConfigurationError("give delay= or at=, not both")
        if self.delay is not None:
            checked_seconds(self.delay, "delay", zero=True)
        if self.at is not None:
            _check_time(self.at)

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

    def __init__(
        self,
        keys: QueueKeys,
        settings: QueueSettings,
        admission: Admission,
        clock: Clock,
    ) -> None:
        self.keys = keys
        self.settings = settings
        self._admission = admission
        self._clock = clock

    def permit(self, callee: Callee, context: ClientContext) -> None:
        """Refuse who may not call a task, before the payload is looked at."""
        self._admission.permit(callee, context.principal, context.roles)

    def submit(
        self,
        callee: Callee,
        payloads: Sequence[bytes],
        options: SubmitOptions,
        ids: Sequence[str] | None = None,
    ) -> Flow[list[str]]:
        """Put tasks into the queue, a round trip per thousand; return their ids."""
        seal = self._admission.seal
        largest = max(map(len, payloads), default=0)
        if largest > self.settings.max_payload:
            raise PayloadTooLarge(callee.name, largest, self.settings.max_payload)
        if ids is None:
            names = new_ids(len(payloads))
        else:
            names = [checked_id(name) for name in ids]
        if len(names) != len(payloads):
            raise ConfigurationError(f"{len(names)} ids for {len(payloads)} tasks")
        envelope = written(callee, options, is_signed=seal is not None)
        around = Letterhead.of(envelope).around
        prefix, channel = self.keys.channel(""), ""
        if len(names) == 1:
            channel = yield Expect(prefix, names[0])

        def call(start: int) -> Call[Submitted]:
            chunk = names[start : start + _CHUNK]
            envelopes = map(around, payloads[start : start + _CHUNK])
            if seal is not None:
                envelopes = map(seal.sign, chunk, envelopes)
            return producing.submit(
                self.keys,
                self.settings,
                list(zip(chunk, envelopes, strict=True)),
                priority=envelope.priority,
                due_ms=options.due_ms,
                delay_ms=options.delay_ms,
                channel=channel,
            )

        starts = range(0, len(payloads), _CHUNK)
        if len(starts) > 1 and not self.settings.max_length:
            answers: list[Submitted] = yield Volley(map(call, starts))
            for submitted in answers:
                _refuse_if_closed(submitted)
            return names
        # One by one: none is to be taken after others found the queue full.
        for start in starts:
            submitted = yield from ask(call(start))
            if channel and submitted.known:
                # It was there before, so nobody was asked to tell of it.
                yield Hear(prefix, names[0], 0.0)
            if submitted.verdict == "full":
                raise QueueFull(
                    f"the queue holds {self.settings.max_length} tasks at most;"
                    f" {start} of {len(payloads)} were taken"
                )
            _refuse_if_closed(submitted)
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
        is_asked: bool = yield Expected(prefix, task_id)
        while True:
            told = None
            if not is_asked:
                told = yield from self._look(task_id, channel)
            is_asked = False
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
                state, waited = (yield from self.state(task_id)), round(timeout or 0, 3)
                raise ResultTimeout(
                    f"task {task_id} did not end within {waited:g} s: it is {state}"
                )

    def _look(self, task_id: str, channel: str) -> Flow[bytes]:
        """Return an outcome if there is one; else it will be told on the channel."""
        seen = yield from ask(reading.trace(self.keys, task_id, channel=channel))
        if not seen.outcome and not seen.envelope:
            raise TaskNotFound(
                f"there is no task {task_id}, or its outcome has expired"
            )
        if not seen.outcome and seen.dead_at_ms is not None:
            raise TaskDead(task_id, "why is not known, its outcome has expired")
        return seen.outcome

    def logs(self, task_id: str) -> Flow[list[LogRecord]]:
        """Read what is kept of the log of a task."""
        return logs(self.keys, task_id)

    def follow(
        self,
        task_id: str,
        channel: Channel,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Flow[None]:
        """Pass on what a task tells until it has ended, or is not wanted any more."""
        return follow(self.keys, task_id, channel, is_wanted)

    def cancel(self, task_id: str) -> Flow[Cancelled]:
        """Cancel a task; follow it if it moves from worker to worker meanwhile."""
        while True:
            seen = yield from ask(reading.trace(self.keys, task_id))
            outcome = TaskOutcome(
                state="cancelled", reason="by its caller", task=_ability(seen.envelope)
            )
            call = producing.cancel(
                self.keys, self.settings, task_id, seen.worker, outcome.encode()
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


def written(
    callee: Callee, options: SubmitOptions, *, is_signed: bool = False
) -> Envelope:
    """Write all of an envelope but the payload."""
    context = options.context
    now_ms = time.time_ns() // 1_000_000
    deadline_ms = options.deadline_ms
    if deadline_ms is None:
        deadline_ms = context.deadline_ms(now_ms)
    return Envelope(
        v=1,
        name=callee.name,
        version=callee.version,
        priority=callee.priority if options.priority is None else options.priority,
        at=now_ms,
        deadline=deadline_ms,
        expires=_expiry(now_ms, options) if is_signed else None,
        principal=context.principal,
        # On Python 3.10 an empty tuple is not always the one that is left out.
        roles=tuple(context.roles) or (),
        log=options.log or context.logging is not None,
        trace=context.trace,
        restart=callee.restart if isinstance(callee, TaskDefinition) else "always",
        payload=msgspec.Raw(b"{}"),
    )


def _refuse_if_closed(submitted: Submitted) -> None:
    if submitted.verdict == "closed":
        raise QueueClosed("the queue was closed: it takes no more input")


def _check_time(at: Any) -> None:
    if not isinstance(at, datetime):
        raise ConfigurationError(
            "at must be a datetime with a time zone, such as"
            f" datetime.now(timezone.utc), not {at!r}"
        )
    if at.tzinfo is None:
        raise ConfigurationError(
            "at= needs a time zone: datetime.now(timezone.utc) has one"
        )


def _expiry(now_ms: int, options: SubmitOptions) -> int:
    due_ms = max(now_ms + options.delay_ms, options.due_ms)
    return min(due_ms + LIFETIME_MS, LATEST_MS)


def _ability(envelope: bytes) -> str:
    try:
        read = Envelope.read(envelope)
    except (BadEnvelope, UnknownEnvelope):
        return ""
    return f"{read.name}@{read.version}"


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
    return TaskState(place, seen.worker, since_ms, reason, attempt, found.progress)
