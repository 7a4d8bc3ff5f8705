"""What is inside of a queue: its keys, settings and driver; and what it does, as flows.

One body for the sync and the asyncio queue: a driver performs the steps of the flows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

import msgspec

from workstealing._checks import checked_id
from workstealing._logs import BackgroundLogger
from workstealing.client.queue_options import QueueOptions
from workstealing.client.task_log import QueueLog
from workstealing.drivers.address import target_of
from workstealing.errors import (
    BadEnvelope,
    ConfigurationError,
    InputEnded,
    PayloadTooLarge,
    QueueFull,
    RedisUnavailable,
    ResultTimeout,
    TaskDead,
    TaskNotFound,
    UnknownEnvelope,
)
from workstealing.queue import inspection_calls, producer_calls
from workstealing.queue.inspection_calls import Counts, Located, locate
from workstealing.queue.keys import QueueKeys
from workstealing.queue.producer_calls import Cancelled, Submitted
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
from workstealing.tasks.contract import TaskInterface
from workstealing.tasks.envelope import (
    Envelope,
    EnvelopeTemplate,
)
from workstealing.tasks.outcome import State, TaskOutcome, TaskState
from workstealing.tasks.submission import (
    Submission,
    SubmitOptions,
    envelope_without_payload,
    new_ids,
)
from workstealing.telemetry.task_events import TaskSubmitted
from workstealing.telemetry.task_observers import TaskObservers, task_observers

if TYPE_CHECKING:
    from workstealing.client.async_task_queue import AsyncTaskQueue
    from workstealing.client.task_queue import TaskQueue
    from workstealing.drivers.async_driver import AsyncDriver
    from workstealing.drivers.sync_driver import Driver

__all__ = ("QueueInternals", "Source", "check_payloads", "internals_of")

logger = BackgroundLogger(__name__)

D_co = TypeVar("D_co", covariant=True)

_CHUNK = 1000
# Outcomes are published; this is how often we look all the same.
_LOOK_SECONDS = 1.0
# How soon a server that is away is tried again.
_RETURN_SECONDS = 0.1
_ROUGHLY_DONE_SECONDS = 0.05


class Source(Protocol[D_co]):
    """Where a queue has its driver from."""

    redis: Any

    @property
    def driver(self) -> D_co:
        """Return the driver; connect if there is none."""

    def close(self) -> Any:
        """Release what it has connected; awaited under asyncio."""


class QueueInternals(Generic[D_co]):
    """Submits, looks, waits and cancels; `internals_of(queue)` returns it."""

    def __init__(self, name: str, options: QueueOptions, source: Source[D_co]) -> None:
        self.source = source
        """What connects; it also has what the user gave to connect with."""
        self.keys = QueueKeys(name, options.run)
        self.settings = options.settings()
        self.admission = options.admission(name)
        self.log = QueueLog(self.keys)
        self._queue = f"{name}/{options.run}"
        self._clock = options.clock
        self.observers = task_observers(name, options.observers, options.clock)
        """Who is told what happens; None if nobody is."""

    @property
    def driver(self) -> D_co:
        """What performs calls and flows; connected when first used."""
        return self.source.driver

    @property
    def target(self) -> str:
        """The name of the server; jobs on one server share a breaker."""
        driver: Any = self.driver
        return target_of(driver.client)

    def submit(
        self,
        task: TaskInterface,
        payloads: Sequence[bytes],
        options: SubmitOptions,
        ids: Sequence[str] | None = None,
    ) -> Flow[Submission]:
        """Put tasks into the queue, a round trip per thousand."""
        if self.observers is None:
            return self._submit(task, payloads, options, ids)
        return self._submit_observed(self.observers, task, payloads, options, ids)

    def _submit_observed(
        self,
        observers: TaskObservers,
        task: TaskInterface,
        payloads: Sequence[bytes],
        options: SubmitOptions,
        ids: Sequence[str] | None,
    ) -> Flow[Submission]:
        """Submit inside of a span, whose context travels with the tasks."""
        context, began_at = options.context, self._clock.monotonic()
        spans = observers.submitting(task.name, len(payloads), context.trace)
        if spans.trace != context.trace:
            options = replace(options, context=replace(context, trace=spans.trace))
        try:
            submission = yield from self._submit(task, payloads, options, ids)
        except BaseException as error:
            spans.end(error)
            raise
        known = len(submission.known)
        spans.end(
            TaskSubmitted(
                observers.queue,
                task.name,
                submission.ids[0] if submission.ids else "",
                len(submission.ids) - known,
                known,
                self._clock.monotonic() - began_at,
            )
        )
        return submission

    def _submit(
        self,
        task: TaskInterface,
        payloads: Sequence[bytes],
        options: SubmitOptions,
        ids: Sequence[str] | None,
    ) -> Flow[Submission]:
        signer = self.admission.signer
        check_payloads(task.name, payloads, self.settings.max_payload)
        if ids is None:
            names = new_ids(len(payloads))
        else:
            names = [checked_id(name) for name in ids]
        if len(names) != len(payloads):
            raise ConfigurationError(
                f"there are {len(names)} ids for {len(payloads)} tasks: give each one"
            )
        envelope = envelope_without_payload(task, options, is_signed=signer is not None)
        around = EnvelopeTemplate.of(envelope).around
        prefix, outcome_channel = self.keys.channel(""), ""
        if len(names) == 1:
            guess: Subscription = yield Subscribe(prefix, names[0], is_guess=True)
            outcome_channel = guess.channel

        def call(start: int) -> Call[Submitted]:
            chunk = names[start : start + _CHUNK]
            envelopes = map(around, payloads[start : start + _CHUNK])
            if signer is not None:
                envelopes = map(signer.sign, chunk, envelopes)
            return producer_calls.submit(
                self.keys,
                self.settings,
                list(zip(chunk, envelopes, strict=True)),
                priority=envelope.priority,
                due_ms=options.due_ms,
                delay_ms=options.delay_ms,
                channel=outcome_channel,
            )

        starts = range(0, len(payloads), _CHUNK)
        if len(starts) > 1 and not self.settings.max_length:
            answers: list[Submitted] = yield Pipeline(map(call, starts))
            for submitted in answers:
                self._refuse_if_ended(submitted)
            known = [submitted.known for submitted in answers]
            return Submission(names, _joined(known))
        # One by one: none is to be taken after others found the queue full.
        known = []
        for start in starts:
            submitted = yield from ask(call(start))
            known.append(submitted.known)
            if outcome_channel and submitted.known:
                # It was there before, so its outcome is not published here.
                yield _stop_expecting(prefix, names[0])
            if submitted.verdict == "full":
                raise QueueFull(
                    f"queue '{self._queue}' is full: max_length="
                    f"{self.settings.max_length} tasks wait or run, so {start} of"
                    f" {len(payloads)} tasks were submitted; try again later"
                )
            self._refuse_if_ended(submitted)
        return Submission(names, _joined(known))

    def _refuse_if_ended(self, submitted: Submitted) -> None:
        if submitted.verdict == "input_ended":
            raise InputEnded(self._queue)

    def state(self, task_id: str) -> Flow[TaskState]:
        """Return where a task is."""
        return _state((yield from locate(self.keys, task_id)))

    def result(
        self,
        task_id: str,
        timeout: float | None,
        read: Callable[[msgspec.Raw], Any],
        whole: float | None = None,
    ) -> Flow[Any]:
        """Wait for a task to end, by push with a look as the safety net.

        A server that is away may come back: only the timeout ends the wait. Errors name
        the *whole* of it, if the caller has spent some already.
        """
        end = None if timeout is None else self._clock.monotonic() + timeout
        prefix = self.keys.channel("")
        own: Subscription | None = None
        absence: RedisUnavailable | None = None
        while True:
            found = None
            try:
                is_requested = False
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
                        "the server cannot be reached; still waiting for task %s: %s",
                        task_id,
                        error,
                    )
                own, absence = None, error
                yield Sleep(max(0.0, self._left(end, _RETURN_SECONDS)))
            if found:
                outcome = TaskOutcome.read(found)
                problem = outcome.problem(task_id)
                if problem is not None:
                    raise problem
                return read(outcome.result)
            if self._left(end, _LOOK_SECONDS) <= 0.0:
                waited = f"{whole or round(timeout or 0, 3):g} s"
                raise (yield from self._overdue(task_id, waited, absence))

    def _left(self, end: float | None, most: float) -> float:
        return most if end is None else min(most, end - self._clock.monotonic())

    def _overdue(
        self, task_id: str, waited: str, absence: RedisUnavailable | None
    ) -> Flow[ResultTimeout]:
        """Return the error that says where a task is, or that nobody can tell."""
        if absence is None:
            try:
                state = yield from self.state(task_id)
                return ResultTimeout(
                    f"task {task_id} did not end within {waited}: it is {state}"
                )
            except RedisUnavailable as error:
                absence = error
        overdue = ResultTimeout(
            f"no outcome of task {task_id} arrived within {waited}, and the server"
            f" cannot be reached: {absence}"
        )
        overdue.__cause__ = absence
        return overdue

    def _look(self, task_id: str, channel: str) -> Flow[bytes]:
        """Return an outcome if there is one; else have it published on a channel."""
        seen = yield from ask(
            producer_calls.request_outcome(self.keys, task_id, channel)
        )
        if seen.verdict == "unknown":
            raise TaskNotFound(
                f"there is no task {task_id}, or its outcome has expired"
            )
        if seen.verdict == "lost":
            raise TaskDead(task_id, "the reason is lost, since its outcome has expired")
        return seen.outcome

    def cancel(self, task_id: str) -> Flow[Cancelled]:
        """Cancel a task; follow it if it moves from worker to worker meanwhile."""
        while True:
            seen = yield from ask(inspection_calls.trace(self.keys, task_id))
            outcome = TaskOutcome(
                state="cancelled", reason="by its caller", task=_ability(seen.envelope)
            )
            call = producer_calls.cancel(
                self.keys,
                self.settings,
                task_id,
                seen.worker,
                outcome.encode(),
                needs=seen.needs,
            )
            verdict = yield from ask(call)
            if verdict != "moved":
                return verdict

    def wait(self, timeout: float | None) -> Flow[Counts]:
        """Wait until no task is left that waits or runs."""
        end = None if timeout is None else self._clock.monotonic() + timeout
        while True:
            seen = yield from ask(inspection_calls.counts(self.keys))
            if seen.unfinished <= 0:
                return seen
            if end is not None and self._clock.monotonic() >= end:
                raise ResultTimeout(
                    f"after {timeout:g} s, {seen.unfinished} tasks of queue"
                    f" '{self._queue}' still wait or run"
                )
            yield Sleep(_ROUGHLY_DONE_SECONDS)


def check_payloads(task: str, payloads: Sequence[bytes], most: int) -> None:
    """Refuse payloads of more bytes than a queue takes."""
    largest = max(map(len, payloads), default=0)
    if largest > most:
        raise PayloadTooLarge(task, largest, most)


def _stop_expecting(prefix: str, task_id: str) -> AwaitOutcome:
    """Return the step that takes back a guess: a wait that is over at once."""
    return AwaitOutcome(prefix, task_id, 0.0)


def _joined(known: Sequence[frozenset[int]]) -> frozenset[int]:
    """Return positions in a whole submission, of those in each of its chunks."""
    return frozenset(
        chunk * _CHUNK + position
        for chunk, positions in enumerate(known)
        for position in positions
    )


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


@overload
def internals_of(queue: TaskQueue) -> QueueInternals[Driver]: ...
@overload
def internals_of(queue: AsyncTaskQueue) -> QueueInternals[AsyncDriver]: ...
def internals_of(queue: TaskQueue | AsyncTaskQueue) -> QueueInternals[Any]:
    """Return what is inside of a queue, for code of this package."""
    return queue._internals  # noqa: SLF001 - hidden from users, not from us
