"""Runs attempts with hooks around them, and with the context variables of their caller.

A queue without middleware and without `carry=` has a plain `TaskRunner` and pays for
none of this. The order of hooks is written once, as a generator that yields what to
call; a sync and an awaiting driver call it. A hook that is `async def` is awaited in
the event loop of an asyncio pool, and run to completion in the event loop of any other
slot.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Iterable
from functools import partial
from typing import Any, TypeAlias

from workstealing.errors import StopWork
from workstealing.tasks.attempt import Attempt, Report, value_or_error
from workstealing.tasks.carried_context import CarriedContext
from workstealing.tasks.context import control_of, enter, leave
from workstealing.tasks.hooks import (
    Middleware,
    MiddlewareStack,
    NewResult,
    TaskCall,
)
from workstealing.tasks.reports import drop_our_frames, too_long
from workstealing.tasks.runner import Complete, TaskRunner

__all__ = ("HookedRunner",)

_HookFlow: TypeAlias = Generator[
    "Callable[[], Any] | None", Any, "tuple[Any, BaseException | None]"
]
"""Yields hooks to call, None for the task itself; returns a value or an error."""


class HookedRunner(TaskRunner):
    """Runs the tasks of a queue for one worker, with hooks around each attempt.

    Args:
        stack: the middlewares of the queue.
        carried: the context variables of the queue.
        parts: the positional arguments of `TaskRunner`.
        options: the keywords of `TaskRunner`.
    """

    def __init__(
        self,
        stack: MiddlewareStack,
        carried: CarriedContext,
        *parts: Any,
        **options: Any,
    ) -> None:
        super().__init__(*parts, **options)
        self._stack = stack
        self._carried = carried

    def run(
        self,
        attempt: Attempt,
        call: Callable[[Attempt], Any],
        complete: Complete = asyncio.run,
    ) -> Report | None:
        """Run an attempt in this thread, with hooks around it."""
        story = self._story_of(attempt)

        def around(attempt: Attempt) -> Any:
            return _perform(story.around(), partial(call, attempt), complete)

        with self._carried.set_to(attempt.envelope.context):
            return super().run(attempt, around, complete)

    async def run_async(
        self, attempt: Attempt, call: Callable[[Attempt], Awaitable[Any]]
    ) -> Report | None:
        """Run an attempt in the running event loop, with hooks around it."""
        story = self._story_of(attempt)

        async def around(attempt: Attempt) -> Any:
            return await _perform_async(story.around(), partial(call, attempt), attempt)

        with self._carried.set_to(attempt.envelope.context):
            return await super().run_async(attempt, around)

    def notify_end(self, attempt: Attempt, report: Report | None) -> None:
        """Call the hooks and listeners of an attempt that ended with its process."""
        stopped = self._story_of(attempt).stopped(StopWork("its process was ended"))
        with self._carried.set_to(attempt.envelope.context):
            _perform(stopped, None, asyncio.run)
        super().notify_end(attempt, report)

    def notify_report(
        self,
        attempt: Attempt,
        report: Report | None,
        complete: Complete = asyncio.run,
    ) -> None:
        """Call the listeners of an attempt that cannot do so itself, or not in time."""
        with self._carried.set_to(attempt.envelope.context):
            super().notify_report(attempt, report, complete)

    def note_error(self, attempt: Attempt, error: BaseException) -> None:
        """Keep the error that an attempt ends with, for its hooks."""
        self._story_of(attempt).error = error

    def notify(self, attempt: Attempt, report: Report, complete: Complete) -> None:
        """Call the listeners and hooks of a task that is tried again or given up."""
        super().notify(attempt, report, complete)
        _perform(self._story_of(attempt).judged(report), None, complete)

    async def notify_async(self, attempt: Attempt, report: Report) -> None:
        """Call the listeners and hooks from an event loop, which must not block."""
        await super().notify_async(attempt, report)
        await _perform_async(self._story_of(attempt).judged(report), None, attempt)

    def _story_of(self, attempt: Attempt) -> _HookStory:
        control = control_of(attempt.context)
        story: _HookStory | None = control.story
        if story is None:
            story = control.story = _HookStory(self._stack, attempt, self._reraised)
        return story


class _HookStory:
    """Which hooks of one attempt have been called, and which come next."""

    def __init__(
        self,
        stack: MiddlewareStack,
        attempt: Attempt,
        passed_on: tuple[type[BaseException], ...],
    ) -> None:
        self._stack = stack
        self._attempt = attempt
        self._passed_on = passed_on
        definition = attempt.definition
        self._task = TaskCall(
            definition.name,
            definition.version,
            attempt.task.id,
            partial(_arguments, attempt),
        )
        self._entered: list[Middleware] = []
        self.error: BaseException | None = None
        """The error that the attempt ended with, if any."""

    def around(self) -> _HookFlow:
        """Call `before`, the task, then `after` or `failed`."""
        task, context = self._task, self._attempt.context
        entered = self._entered
        try:
            for one in self._stack.all:
                yield partial(one.before, task, context)
                entered.insert(0, one)
            value = yield None
        except BaseException as error:  # noqa: BLE001 - the runner judges it
            if not isinstance(error, self._passed_on):
                drop_our_frames(error)
                told = _why_it_failed(self._attempt, error)
                yield from self._call_hooks(entered, "failed", told)
            # Returned, because a generator cannot raise `StopIteration` as it is.
            return None, error
        for one in entered:
            new = yield from self._call_hook(one, "after", value)
            if isinstance(new, NewResult):
                value = new.value
        return value, None

    def stopped(self, error: BaseException) -> _HookFlow:
        """Call `failed` for an attempt whose own thread will not."""
        told = _why_it_failed(self._attempt, error)
        yield from self._call_hooks(tuple(self._entered), "failed", told)
        return None, None

    def judged(self, report: Report) -> _HookFlow:
        """Call `retried` or `gave_up`, as the report says."""
        context = self._attempt.context
        reason = control_of(context).given_up or ""
        error = self.error or _why_it_failed(self._attempt, StopWork(reason))
        every = reversed(self._stack.all)
        # The runner has left the context of the attempt by now.
        token = enter(context)
        try:
            if report.verdict == "retry":
                seconds = report.delay_ms / 1000
                yield from self._call_hooks(every, "retried", error, seconds)
            else:
                yield from self._call_hooks(every, "gave_up", error, reason)
        finally:
            leave(token)
        return None, None

    def _call_hooks(
        self, those: Iterable[Middleware], hook: str, *arguments: Any
    ) -> Generator[Callable[[], Any], Any, None]:
        for one in those:
            yield from self._call_hook(one, hook, *arguments)

    def _call_hook(
        self, one: Middleware, hook: str, *arguments: Any
    ) -> Generator[Callable[[], Any], Any, Any]:
        function = getattr(one, hook)
        try:
            return (
                yield partial(function, self._task, self._attempt.context, *arguments)
            )
        except self._passed_on:
            raise
        except BaseException as error:  # noqa: BLE001 - the task's outcome stands
            self._stack.log_failure(one, hook, error)


def _why_it_failed(attempt: Attempt, error: BaseException) -> BaseException:
    """Return why an attempt was stopped, rather than how, or else its own error.

    A time limit is a `TimeoutError`, as in the outcome; a cancellation or a hot stop is
    `StopWork`, for coroutines too.
    """
    if not attempt.is_interrupted:
        return error
    if not isinstance(error, StopWork | asyncio.CancelledError):
        return error
    if attempt.is_overdue:
        return too_long(attempt, error.__traceback__)
    if isinstance(error, StopWork):
        return error
    return StopWork("it was told to stop").with_traceback(error.__traceback__)


def _arguments(attempt: Attempt) -> dict[str, Any]:
    """Return what the caller gave: neither the context nor resources.

    A task that was refused has none.
    """
    signature, given = attempt.definition.signature, attempt.arguments
    names = signature.parameters if signature.whole is None else (signature.whole,)
    return {name: given[name] for name in names} if given else {}


def _perform(
    flow: _HookFlow, call: Callable[[], Any] | None, complete: Complete
) -> Any:
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = flow.send(answer) if error is None else flow.throw(error)
        except StopIteration as end:
            value, failure = end.value
            break
        answer = error = None
        try:
            if step is None:
                assert call is not None
                answer = call()
            else:
                answer = step()
                if inspect.isawaitable(answer):
                    answer, error = complete(value_or_error(answer))
        except BaseException as caught:  # noqa: BLE001 - the flow decides
            error = caught
    if failure is not None:
        raise failure
    return value


async def _perform_async(
    flow: _HookFlow, call: Callable[[], Awaitable[Any]] | None, attempt: Attempt
) -> Any:
    answer: Any = None
    error: BaseException | None = None
    is_cancelled = False
    while True:
        try:
            step = flow.send(answer) if error is None else flow.throw(error)
        except StopIteration as end:
            value, failure = end.value
            break
        answer = error = None
        try:
            if step is None:
                assert call is not None
                answer = await call()
            else:
                answer = step()
                if inspect.isawaitable(answer):
                    answer, error = await asyncio.ensure_future(value_or_error(answer))
        except BaseException as caught:  # noqa: BLE001 - the flow decides
            error = caught
            if isinstance(caught, asyncio.CancelledError) and step is not None:
                is_cancelled = is_cancelled or _is_cancelling()
    if is_cancelled:
        # The slot was cancelled, and ends; an attempt that had not run goes back.
        attempt.is_interrupted = True
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
    if failure is not None:
        raise failure
    return value


def _is_cancelling() -> bool:
    """Return whether the slot was cancelled; Python 3.10 cannot tell."""
    cancelling = getattr(asyncio.current_task(), "cancelling", None)
    return cancelling is not None and cancelling() > 0
