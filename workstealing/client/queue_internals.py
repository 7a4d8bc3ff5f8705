"""What is inside of a queue: its keys, settings and driver; and what it does, as flows.

One body for the sync and the asyncio queue: a driver performs the steps of the flows.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from itertools import chain
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, overload
from weakref import WeakSet

import msgspec

from workstealing._checks import checked_id, checked_task_name
from workstealing._logs import BackgroundLogger
from workstealing.client.event_watch import Glance
from workstealing.client.queue_options import QueueOptions
from workstealing.client.queue_schedules import QueueSchedules
from workstealing.client.task_log import QueueLog
from workstealing.client.unique_submission import (
    UniqueSubmission,
    warn_of_ended,
)
from workstealing.clock import Clock, time_of_day
from workstealing.drivers.address import target_of
from workstealing.errors import (
    BadEnvelope,
    ConfigurationError,
    InputEnded,
    NotReplicated,
    PayloadTooLarge,
    QueueFull,
    RedisUnavailable,
    ResultTimeout,
    TaskDead,
    TaskNotFound,
    UnknownEnvelope,
    WorkStealingError,
)
from workstealing.queue import (
    inspection_calls,
    limit_calls,
    listing_calls,
    pause_calls,
    producer_calls,
)
from workstealing.queue.inspection_calls import (
    Counts,
    Located,
    Trace,
    locate,
    waits_for,
)
from workstealing.queue.keys import QueueKeys
from workstealing.queue.limit_calls import LimitState
from workstealing.queue.producer_calls import Cancelled, Submitted
from workstealing.queue.steps import (
    AwaitOutcome,
    Call,
    Flow,
    Invoke,
    Pipeline,
    Sleep,
    Subscribe,
    Subscription,
    ask,
)
from workstealing.queue.task_output_calls import read_note
from workstealing.tasks.carried_context import CarriedContext
from workstealing.tasks.context import Progress
from workstealing.tasks.contract import TaskInterface
from workstealing.tasks.envelope import (
    Envelope,
    EnvelopeTemplate,
)
from workstealing.tasks.hooks import TaskCall
from workstealing.tasks.limits import checked_limit_key, checked_limit_name
from workstealing.tasks.outcome import State, TaskOutcome, TaskState
from workstealing.tasks.submission import (
    Submission,
    SubmitOptions,
    envelope_without_payload,
    lines_of,
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
_CHUNK_BYTES = 4 << 20
# Outcomes are published; this is how often we look all the same.
_LOOK_SECONDS = 1.0
# How soon a server that is away is tried again.
_RETURN_SECONDS = 0.1
_ROUGHLY_DONE_SECONDS = 0.05
# Lines that wait for a limit are told of new numbers a thousand at a time. Those that
# find no room come back to wait, so there may always be some.
_MOST_SLICES = 1000
# Outcomes that are read at once, and what waits for one more look at one of them.
_OUTCOMES = 100
_LOOK_COST_SECONDS = 0.00002


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
        self.middleware = options.middleware
        self.carried = CarriedContext(options.carry) if options.carry else None
        self.log = QueueLog(self.keys)
        self._queue = f"{name}/{options.run}"
        self.schedules = QueueSchedules(
            self._queue,
            self.keys,
            self.settings,
            self.admission.signer,
            options.release,
        )
        """Shared with the sync twin of an asyncio queue."""
        self.clock = options.clock
        self.time_ns = time_of_day(options.clock)
        """Tells the time of day, also to the workers of the queue."""
        self.twins: WeakSet[QueueInternals[Any]] = WeakSet()
        """Those of the sync queues that were made of an asyncio queue."""
        self.observers = task_observers(name, options.observers, options.clock)
        """Who is told what happens; None if nobody is."""

    def become_twin_of(self, other: QueueInternals[Any]) -> None:
        """Be what is inside of the sync queue that an asyncio queue has made."""
        self.schedules = other.schedules
        self.clock, self.time_ns = other.clock, other.time_ns
        other.twins.add(self)

    @contextmanager
    def moved_to(self, source: Source[Any], clock: Clock) -> Iterator[None]:
        """Work elsewhere and by another clock while the context lasts."""
        before = self.source, self.clock, self.time_ns
        self.source, self.clock = source, clock
        self.time_ns = time_of_day(clock)
        try:
            yield
        finally:
            self.source, self.clock, self.time_ns = before

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
        """Put tasks into the queue, a round trip per thousand, or per 4 MiB."""
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
        context, began_at = options.context, self.clock.monotonic()
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
                self.clock.monotonic() - began_at,
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
        carried = None if self.carried is None else self.carried.values()
        if options.again or task.unique is not None:
            unique = UniqueSubmission(
                self, task, options, carried, is_drawn=ids is None
            )
            submission = yield from unique.submit(names, payloads)
            return (yield from self._told(task, payloads, submission))
        envelope = envelope_without_payload(
            task,
            options,
            is_signed=signer is not None,
            carried=carried,
            time_ns=self.time_ns,
        )
        around = EnvelopeTemplate.of(envelope).around
        lines, limits = lines_of(task, payloads, options)
        prefix, outcome_channel, refusals = self.keys.channel(""), "", -1
        driver: Any = self.driver
        # What is sent again, by a client that does so, may be known by then.
        is_new = ids is None and driver.sends_once
        if len(names) == 1:
            guess: Subscription = yield Subscribe(prefix, names[0], is_guess=True)
            outcome_channel = guess.channel

        def call(part: slice) -> Call[Submitted]:
            chunk = names[part]
            envelopes = map(around, payloads[part])
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
                lines=lines[part],
                limits=limits,
                refusals=refusals,
                is_new=is_new,
            )

        parts = _parts(payloads)
        replicas = self.settings.replicas
        if len(parts) > 1 and not replicas:
            if self.settings.max_length:
                refusals = yield from ask(producer_calls.count_refusals(self.keys))
            answers: list[Submitted] = yield Pipeline(map(call, parts))
            for part, submitted in zip(parts, answers, strict=True):
                self.refuse(submitted.verdict, part.start, len(payloads))
            return (
                yield from self._told(task, payloads, _joined(names, parts, answers))
            )
        # One by one: none is to be taken after others were not replicated.
        answers = []
        for part in parts:
            try:
                submitted = yield from ask(call(part))
            except NotReplicated as error:
                submitted = cast("Submitted", error.answer)
                if submitted.verdict == "ok":
                    raise NotReplicated(
                        tuple(names), error.confirmed, replicas
                    ) from None
            answers.append(submitted)
            if outcome_channel and submitted.known:
                # It was there before, so its outcome is not published here.
                yield _stop_expecting(prefix, names[0])
            self.refuse(submitted.verdict, part.start, len(payloads))
        submission = _joined(names, parts, answers)
        return (yield from self._told(task, payloads, submission))

    def _told(
        self, task: TaskInterface, payloads: Sequence[bytes], submission: Submission
    ) -> Flow[Submission]:
        """Return a submission, of which middlewares were told."""
        if self.middleware.all:
            yield from self._tell(task, payloads, submission.ids, submission.known)
        return submission

    def _tell(
        self,
        task: TaskInterface,
        payloads: Sequence[bytes],
        ids: Sequence[str],
        known: frozenset[int],
    ) -> Flow[None]:
        """Tell middlewares of tasks that are in the queue now."""
        decode = task.signature.decode
        for place, (name, payload) in enumerate(zip(ids, payloads, strict=True)):
            if place not in known:
                arguments = partial(decode, payload)
                yield from self.tell(TaskCall(task.name, task.version, name, arguments))

    def tell(self, call: TaskCall) -> Flow[None]:
        """Tell middlewares of a task that is in the queue now."""
        for one in self.middleware.all:
            try:
                answer = yield Invoke(one.submitted, (call,))
                if inspect.isawaitable(answer):
                    # Only a queue that cannot await leaves it to us.
                    _complete_aside(answer)
            except Exception as error:  # noqa: BLE001 - the task is submitted
                self.middleware.log_failure(one, "submitted", error)

    def refuse(self, verdict: str, submitted: int, tasks: int) -> None:
        """Raise what a verdict means, after so many of all tasks were submitted."""
        if verdict == "full":
            raise QueueFull(
                f"queue '{self._queue}' is full: max_length="
                f"{self.settings.max_length} tasks wait or run, so {submitted} of"
                f" {tasks} tasks were submitted; try again later"
            )
        if verdict == "input_ended":
            raise InputEnded(self._queue)

    def state(self, task_id: str) -> Flow[TaskState]:
        """Return where a task is."""
        found = yield from locate(self.keys, task_id)
        state = _state(found)
        if found.place is not State.WAITING or not found.trace.line:
            return state
        held = yield from ask(limit_calls.held_back(self.keys, task_id))
        return replace(state, reason=held.reason)

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
        end = None if timeout is None else self.clock.monotonic() + timeout
        prefix = self.keys.channel("")
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
                        "the server cannot be reached; still waiting for task %s: %s",
                        task_id,
                        error,
                    )
                own, absence = None, error
                yield Sleep(max(0.0, self._left(end, _RETURN_SECONDS)))
            if found and not (is_requested and _may_be_replayed(found)):
                return _decoded(task_id, found, read)
            if self._left(end, _LOOK_SECONDS) <= 0.0:
                waited = f"{whole or round(timeout or 0, 3):g} s"
                raise (yield from self._overdue(task_id, waited, absence))

    def _left(self, end: float | None, most: float) -> float:
        return most if end is None else min(most, end - self.clock.monotonic())

    def _overdue(
        self, task_id: str, waited: str, absence: RedisUnavailable | None
    ) -> Flow[ResultTimeout]:
        """Return the error that says where a task is, or that nobody can tell."""
        if absence is None:
            try:
                found = yield from locate(self.keys, task_id)
                words = f"task {task_id} did not end within {waited}: it is"
                words += f" {_state(found)}"
                living = listing_calls.count_living(self.keys, found.trace.now_ms)
                if found.place is not None and not (yield from ask(living)):
                    words += (
                        f"; no worker of queue '{self._queue}' is alive: start one, or"
                        " see that it has the same Redis, queue and run"
                    )
                return ResultTimeout(words)
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
        end = None if timeout is None else self.clock.monotonic() + timeout
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
            # Many looks in a row would cost the server more than the waiters gain.
            yield Sleep(max(0.0, self._left(end, len(waiting) * _LOOK_COST_SECONDS)))
            yield from self.linger(waiting[-1], self._left(end, _LOOK_SECONDS))

    def _read_outcomes(
        self, ids: Sequence[str]
    ) -> Flow[dict[str, producer_calls.RequestedOutcome]]:
        """Read those that have ended; none if the server is away."""
        chunks = [ids[n : n + _OUTCOMES] for n in range(0, len(ids), _OUTCOMES)]
        calls = [producer_calls.read_outcomes(self.keys, chunk) for chunk in chunks]
        try:
            answers: list[list[producer_calls.RequestedOutcome]] = yield Pipeline(calls)
        except RedisUnavailable:
            yield Sleep(_RETURN_SECONDS)
            return {}
        seen = zip(ids, chain.from_iterable(answers), strict=True)
        return {name: one for name, one in seen if one.verdict != "pending"}

    def glance(self, task_id: str, envelope: bytes) -> Flow[Glance]:
        """Look at a task, and at what it showed last if it has just ended."""
        found = yield from locate(self.keys, task_id)
        progress, envelope = found.progress, found.trace.envelope or envelope
        if found.place is None and envelope:
            note = read_note(self.keys, task_id, envelope, "progress")
            shown = yield from ask(note)
            progress = None if shown is None else Progress.read(shown)
        return Glance(_state(found), progress, envelope)

    def linger(self, task_id: str, seconds: float) -> Flow[None]:
        """Let some time pass, or less if the task ends."""
        prefix = self.keys.channel("")
        try:
            own: Subscription = yield Subscribe(prefix, task_id)
            seen = yield from ask(
                producer_calls.request_outcome(self.keys, task_id, own.channel)
            )
            if seen.verdict == "requested" and seconds > 0.0:
                yield AwaitOutcome(prefix, task_id, seconds)
        except RedisUnavailable:
            yield Sleep(max(0.0, min(seconds, _RETURN_SECONDS)))

    def cancel(self, task_id: str) -> Flow[Cancelled]:
        """Cancel a task; follow it if it moves from worker to worker meanwhile."""
        while True:
            seen = yield from ask(inspection_calls.trace(self.keys, task_id))
            verdict = yield from ask(self.cancelling(task_id, seen))
            if verdict != "moved":
                return verdict

    def cancelling(self, task_id: str, seen: Trace) -> Call[Cancelled]:
        """Return the call that cancels a task where it was seen."""
        outcome = TaskOutcome(
            state="cancelled", reason="by its caller", task=_ability(seen.envelope)
        )
        return producer_calls.cancel(
            self.keys,
            self.settings,
            task_id,
            seen.worker,
            outcome.encode(),
            needs=seen.needs,
        )

    def pause(self, task: Any) -> Call[bool]:
        """Pause tasks of a name, or all of the queue."""
        return pause_calls.pause(self.keys, _paused_name(task))

    def resume(self, task: Any) -> Flow[bool]:
        """Resume tasks of a name, or all of the queue."""
        return pause_calls.resume_all(self.keys, _paused_name(task))

    def limits(self, name: str | None, key: Any) -> Flow[tuple[LimitState, ...]]:
        """Describe limits, and how much of them is in use."""
        wanted = "" if name is None else checked_limit_name(name)
        call = limit_calls.describe_limits(
            self.keys, wanted, "" if key is None else checked_limit_key(key)
        )
        found = yield from ask(call)
        if name is not None and not found:
            raise self._unknown_limit(name)
        return found

    def set_limit(self, name: str, numbers: str) -> Flow[None]:
        """Set the numbers of a limit, or go back to those of the code."""
        checked_limit_name(name)
        for _ in range(_MOST_SLICES):
            done = yield from ask(limit_calls.set_limit(self.keys, name, numbers))
            if not done.is_known:
                raise self._unknown_limit(name)
            if done.is_other_kind:
                kind, wanted = "run at once", "concurrency"
                if "/" not in numbers:
                    kind, wanted = "begin in a time", "rate and period"
                raise ConfigurationError(
                    f"{name} is a limit on how many {kind}: give {wanted}"
                )
            if not done.has_more:
                return

    def _unknown_limit(self, name: str) -> ConfigurationError:
        return ConfigurationError(
            f"queue '{self._queue}' has no limit {name}: a limit is known once a task"
            " with it was submitted"
        )

    def wait(self, timeout: float | None) -> Flow[Counts]:
        """Wait until no task is left that waits or runs."""
        end = None if timeout is None else self.clock.monotonic() + timeout
        while True:
            seen = yield from ask(inspection_calls.counts(self.keys))
            if seen.unfinished <= 0:
                return seen
            if end is not None and self.clock.monotonic() >= end:
                raise ResultTimeout(
                    f"after {timeout:g} s, {seen.unfinished} tasks of queue"
                    f" '{self._queue}' still wait or run"
                    + "".join(f"; {one}" for one in seen.pauses.sentences())
                )
            yield Sleep(_ROUGHLY_DONE_SECONDS)


def _result(
    task_id: str,
    seen: producer_calls.RequestedOutcome,
    read: Callable[[msgspec.Raw], Any],
) -> Any:
    _refuse_missing(task_id, seen)
    return _decoded(task_id, seen.outcome, read)


def _decoded(task_id: str, found: bytes, read: Callable[[msgspec.Raw], Any]) -> Any:
    outcome = TaskOutcome.read(found)
    problem = outcome.problem(task_id)
    if problem is not None:
        raise problem
    return read(outcome.result)


def _may_be_replayed(found: bytes) -> bool:
    """Whether an outcome that was published before the wait may be out of date."""
    return TaskOutcome.read(found).state in ("dead", "failed")


def _refuse_missing(task_id: str, seen: producer_calls.RequestedOutcome) -> None:
    if seen.verdict == "unknown":
        raise TaskNotFound(f"there is no task {task_id}, or its outcome has expired")
    if seen.verdict == "lost":
        raise TaskDead(task_id, "the reason is lost, since its outcome has expired")


def check_payloads(task: str, payloads: Sequence[bytes], most: int) -> None:
    """Refuse payloads of more bytes than a queue takes."""
    largest = max(map(len, payloads), default=0)
    if largest > most:
        raise PayloadTooLarge(task, largest, most)


def _complete_aside(hook: Awaitable[None]) -> None:
    """Run a coroutine to its end where none can be awaited, in a thread of its own.

    The caller's thread may have an event loop that runs, and has to wait all the same.
    """
    errors: list[BaseException] = []

    async def finish() -> None:
        await hook

    def run() -> None:
        try:
            asyncio.run(finish())
        except BaseException as error:  # noqa: BLE001 - raised where it was awaited
            errors.append(error)

    context = copy_context()
    thread = Thread(target=context.run, args=(run,), daemon=True)
    thread.start()
    thread.join()
    for error in errors:
        if isinstance(error, Exception):
            raise error
        raise RuntimeError(f"the hook raised {type(error).__name__}") from error


def _stop_expecting(prefix: str, task_id: str) -> AwaitOutcome:
    """Return the step that takes back a guess: a wait that is over at once."""
    return AwaitOutcome(prefix, task_id, 0.0)


def _parts(payloads: Sequence[bytes]) -> list[slice]:
    """Divide a submission, so that no part of it holds the server for long."""
    parts: list[slice] = []
    for start in range(0, len(payloads), _CHUNK):
        end = min(start + _CHUNK, len(payloads))
        # Mostly they are short, and looking at each one would be felt.
        if sum(map(len, payloads[start:end])) > _CHUNK_BYTES:
            parts += _short_parts(payloads, start, end)
        else:
            parts.append(slice(start, end))
    return parts


def _short_parts(payloads: Sequence[bytes], start: int, end: int) -> Iterator[slice]:
    size = 0
    for position in range(start, end):
        size += len(payloads[position])
        if position > start and size > _CHUNK_BYTES:
            yield slice(start, position)
            start, size = position, len(payloads[position])
    yield slice(start, end)


def _joined(
    names: list[str], parts: Sequence[slice], answers: Sequence[Submitted]
) -> Submission:
    """Return a whole submission of the answers to its parts."""
    known: set[int] = set()
    ended: dict[int, str] = {}
    for part, answer in zip(parts, answers, strict=True):
        known.update(part.start + position for position in answer.known)
        for position, state in answer.ended.items():
            ended[part.start + position] = state
    if ended:
        warn_of_ended(names, ended)
    return Submission(names, frozenset(known), ended)


def _paused_name(task: Any) -> str | None:
    """Return the name of a task, given as such or by its name; None: all of them."""
    if task is None:
        return None
    name = checked_task_name(getattr(task, "name", task))
    if name == "*":
        raise ConfigurationError(
            "a task named '*' cannot be paused alone, because that is how the whole"
            " queue is written down: give no name to pause the queue"
        )
    return name


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


@overload
def internals_of(queue: TaskQueue) -> QueueInternals[Driver]: ...
@overload
def internals_of(queue: AsyncTaskQueue) -> QueueInternals[AsyncDriver]: ...
def internals_of(queue: TaskQueue | AsyncTaskQueue) -> QueueInternals[Any]:
    """Return what is inside of a queue, for code of this package."""
    return queue._internals  # noqa: SLF001 - hidden from users, not from us
