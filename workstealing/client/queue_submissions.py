"""Puts tasks into a queue, and tells observers and middleware about it.

Each call takes a thousand tasks, and is sent while the server works on the one before.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

from workstealing._checks import checked_id
from workstealing.client.shard_spread import joined_parts, spread_over_shards
from workstealing.client.unique_submission import (
    UniqueSubmission,
    warn_of_ended,
)
from workstealing.errors import (
    ConfigurationError,
    InputEnded,
    NotReplicated,
    PayloadTooLarge,
    QueueFull,
)
from workstealing.queue import producer_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.producer_calls import Submitted
from workstealing.queue.steps import (
    AwaitOutcome,
    Call,
    Flow,
    Invoke,
    Pipeline,
    Subscribe,
    Subscription,
    ask,
)
from workstealing.tasks.contract import TaskInterface
from workstealing.tasks.envelope import EnvelopeTemplate
from workstealing.tasks.hooks import TaskCall
from workstealing.tasks.submission import (
    Submission,
    SubmitOptions,
    envelope_without_payload,
    lines_of,
    new_ids,
)
from workstealing.telemetry.task_events import TaskSubmitted
from workstealing.telemetry.task_observers import TaskObservers

if TYPE_CHECKING:
    from workstealing.client.queue_internals import QueueInternals

__all__ = ("BYTES_PER_CALL", "TASKS_PER_CALL", "QueueSubmissions", "check_payloads")

TASKS_PER_CALL = 1000
BYTES_PER_CALL = 4 << 20
"""More than this in one call would hold the server up."""


class QueueSubmissions:
    """Submits tasks to one queue."""

    def __init__(self, internals: QueueInternals[Any]) -> None:
        self._internals = internals

    def submit(
        self,
        task: TaskInterface,
        payloads: Sequence[bytes],
        options: SubmitOptions,
        ids: Sequence[str] | None = None,
    ) -> Flow[Submission]:
        """Put tasks into the queue, a round trip per thousand, or per 4 MiB."""
        if self._internals.observers is None:
            return self._submit(task, payloads, options, ids)
        return self._submit_observed(
            self._internals.observers, task, payloads, options, ids
        )

    def _submit_observed(
        self,
        observers: TaskObservers,
        task: TaskInterface,
        payloads: Sequence[bytes],
        options: SubmitOptions,
        ids: Sequence[str] | None,
    ) -> Flow[Submission]:
        """Submit within a span, whose context travels with the tasks."""
        context, began_at = options.context, self._internals.clock.monotonic()
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
                self._internals.clock.monotonic() - began_at,
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
        internals = self._internals
        check_payloads(task.name, payloads, internals.settings.max_payload)
        names = None if ids is None else [checked_id(name) for name in ids]
        if names is not None and len(names) != len(payloads):
            raise ConfigurationError(
                f"there are {len(names)} ids for {len(payloads)} tasks: give one for"
                " each task"
            )
        carry = internals.carried
        carried = None if carry is None else carry.values()
        if not internals.shards.are_several:
            submission = yield from self._submit_to(
                internals.keys,
                task,
                new_ids(len(payloads)) if names is None else names,
                payloads,
                options,
                carried,
                is_drawn=names is None,
                whole=len(payloads),
            )
            return (yield from self._with_hooks(task, payloads, submission))
        spread = yield from spread_over_shards(
            internals.shards, task, payloads, options, names
        )
        done: list[Submission] = []
        try:
            for part in spread:
                submission = yield from self._submit_to(
                    part.keys,
                    task,
                    part.ids,
                    [payloads[at] for at in part.positions],
                    options,
                    carried,
                    is_drawn=names is None,
                    before=sum(len(one.ids) for one in done),
                    whole=len(payloads),
                )
                done.append(submission)
        except NotReplicated as error:
            every = tuple(name for part in spread for name in part.ids)
            whole = NotReplicated(every, error.confirmed, error.replicas)
            raise whole from error.__cause__
        submission = joined_parts(spread, done)
        return (yield from self._with_hooks(task, payloads, submission))

    def _submit_to(
        self,
        keys: QueueKeys,
        task: TaskInterface,
        names: list[str],
        payloads: Sequence[bytes],
        options: SubmitOptions,
        carried: dict[str, str] | None,
        *,
        is_drawn: bool,
        whole: int,
        before: int = 0,
    ) -> Flow[Submission]:
        """Submit to one shard, after *before* tasks of the *whole* went to others."""
        internals, settings = self._internals, self._internals.shards.settings
        if options.again or task.unique is not None:
            unique = UniqueSubmission(
                internals, keys, task, options, carried, is_drawn=is_drawn
            )
            return (yield from unique.submit(names, payloads, before, whole))
        signer = internals.admission.signer
        envelope = envelope_without_payload(
            task,
            options,
            is_signed=signer is not None,
            carried=carried,
            time_ns=internals.time_ns,
        )
        around = EnvelopeTemplate.of(envelope).around
        lines, limits = lines_of(task, payloads, options)
        # One subscription serves all shards: messages reach every node.
        prefix, outcome_channel, refusals = internals.keys.channel(""), "", -1
        driver: Any = internals.driver
        # A client that repeats a call may find its own tasks there.
        is_new = is_drawn and driver.sends_once
        if len(names) == 1:
            guess: Subscription = yield Subscribe(prefix, names[0], is_guess=True)
            outcome_channel = guess.channel

        def call(some: slice) -> Call[Submitted]:
            chunk = names[some]
            envelopes = map(around, payloads[some])
            if signer is not None:
                envelopes = map(signer.sign, chunk, envelopes)
            return producer_calls.submit(
                keys,
                settings,
                list(zip(chunk, envelopes, strict=True)),
                priority=envelope.priority,
                due_ms=options.due_ms,
                delay_ms=options.delay_ms,
                channel=outcome_channel,
                lines=lines[some],
                limits=limits,
                refusals=refusals,
                is_new=is_new,
            )

        parts = _parts(payloads)
        replicas = settings.replicas
        if len(parts) > 1 and not replicas:
            if settings.max_length:
                refusals = yield from ask(producer_calls.count_refusals(keys))
            answers: list[Submitted] = yield Pipeline(map(call, parts))
            for some, submitted in zip(parts, answers, strict=True):
                self.refuse(submitted.verdict, before + some.start, whole)
            return _joined(names, parts, answers)
        # One by one: if some were not replicated, no more must be submitted.
        answers = []
        for some in parts:
            try:
                submitted = yield from ask(call(some))
            except NotReplicated as error:
                submitted = cast("Submitted", error.answer)
                if submitted.verdict == "ok":
                    missing = NotReplicated(tuple(names), error.confirmed, replicas)
                    raise missing from error.__cause__
            answers.append(submitted)
            if outcome_channel and submitted.known:
                # The task was there before, so its outcome is not published to us.
                yield _stop_expecting(prefix, names[0])
            self.refuse(submitted.verdict, before + some.start, whole)
        return _joined(names, parts, answers)

    def _with_hooks(
        self, task: TaskInterface, payloads: Sequence[bytes], submission: Submission
    ) -> Flow[Submission]:
        """Call the hooks of a submission, and return it."""
        if not self._internals.middleware.all:
            return submission
        decode, ids = task.signature.decode, submission.ids
        for place, (name, payload) in enumerate(zip(ids, payloads, strict=True)):
            if place not in submission.known:
                arguments = partial(decode, payload)
                call = TaskCall(task.name, task.version, name, arguments)
                yield from self.notify_submitted(call)
        return submission

    def notify_submitted(self, call: TaskCall) -> Flow[None]:
        """Call the hooks of one task that was put into the queue."""
        for one in self._internals.middleware.all:
            try:
                answer = yield Invoke(one.submitted, (call,))
                if inspect.isawaitable(answer):
                    # An asyncio driver has awaited it; a sync one cannot.
                    _complete_aside(answer)
            except Exception as error:  # noqa: BLE001 - the task is submitted
                self._internals.middleware.log_failure(one, "submitted", error)

    def refuse(self, verdict: str, submitted: int, tasks: int) -> None:
        """Raise the error of a verdict; *submitted* of all tasks are in the queue."""
        if verdict == "full":
            raise QueueFull(
                f"queue '{self._internals.full_name}' is full: max_length="
                f"{self._internals.settings.max_length} tasks wait or run, so"
                f" {submitted} of {tasks} tasks were submitted; try again later"
            )
        if verdict == "input_ended":
            raise InputEnded(self._internals.full_name)


def check_payloads(task: str, payloads: Sequence[bytes], most: int) -> None:
    """Refuse payloads of more bytes than a queue takes."""
    largest = max(map(len, payloads), default=0)
    if largest > most:
        raise PayloadTooLarge(task, largest, most)


def _complete_aside(hook: Awaitable[None]) -> None:
    """Run an awaitable to its end in a thread of its own, and wait for it.

    The calling thread cannot await it, and may have a running event loop.
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
    """Return a wait that ends at once, so that the outcome is not expected any more."""
    return AwaitOutcome(prefix, task_id, 0.0)


def _parts(payloads: Sequence[bytes]) -> list[slice]:
    """Divide a submission, so that no call holds the server up."""
    parts: list[slice] = []
    for start in range(0, len(payloads), TASKS_PER_CALL):
        end = min(start + TASKS_PER_CALL, len(payloads))
        # Payloads are mostly short, and a look at each one would take noticeable time.
        if sum(map(len, payloads[start:end])) > BYTES_PER_CALL:
            parts += _short_parts(payloads, start, end)
        else:
            parts.append(slice(start, end))
    return parts


def _short_parts(payloads: Sequence[bytes], start: int, end: int) -> Iterator[slice]:
    size = 0
    for position in range(start, end):
        size += len(payloads[position])
        if position > start and size > BYTES_PER_CALL:
            yield slice(start, position)
            start, size = position, len(payloads[position])
    yield slice(start, end)


def _joined(
    names: list[str], parts: Sequence[slice], answers: Sequence[Submitted]
) -> Submission:
    """Join the answers to the parts of a submission."""
    known: set[int] = set()
    ended: dict[int, str] = {}
    for part, answer in zip(parts, answers, strict=True):
        known.update(part.start + position for position in answer.known)
        for position, state in answer.ended.items():
            ended[part.start + position] = state
    if ended:
        warn_of_ended(names, ended)
    return Submission(names, frozenset(known), ended)
