"""The observers of a queue, as its clients and workers call them.

Events are passed on by one daemon thread per process: neither a caller nor a worker
waits for an observer that blocks, and if it blocks for too long, events are dropped and
counted. `flush_events` waits until they have arrived; a pool that stops, and a process
that ends, do so for a second at most.

An observer may make spans, too (`SpanObserver`). These begin in the thread of the
caller or of the task, because a task that submits another continues its trace; they end
in the thread of the events.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any, Protocol, runtime_checkable

from workstealing._logs import FLUSH_SECONDS, BackgroundCalls
from workstealing.clock import Clock
from workstealing.errors import ConfigurationError
from workstealing.telemetry.events import Event
from workstealing.telemetry.observers import FanOut, Observer
from workstealing.telemetry.task_events import TaskEnded, TaskStarted, TaskSubmitted

__all__ = (
    "EndOfRun",
    "EndOfSubmit",
    "RunSpans",
    "SpanObserver",
    "SubmitSpans",
    "TaskObservers",
    "flush_events",
    "task_observers",
)

EndOfSubmit = Callable[[TaskSubmitted | BaseException], None]
EndOfRun = Callable[[TaskEnded], None]


@runtime_checkable
class SpanObserver(Observer, Protocol):
    """An observer that also makes spans. Of several, the first decides on the trace."""

    def submitting(
        self, queue: str, task: str, number: int, trace: str
    ) -> tuple[str, EndOfSubmit]:
        """Begin the span of a submit, in the thread of the caller.

        Args:
            queue: where to.
            task: the name of the task.
            number: how many are submitted by one call.
            trace: the W3C `traceparent` that the caller has given, or empty.

        Returns:
            The `traceparent` that is to travel with the tasks, and what is called with
            how it went.
        """
        ...

    def running(self, event: TaskStarted) -> AbstractContextManager[EndOfRun]:
        """Begin the span of a run; it is current while the context lasts.

        The context is entered and left where the task runs, in its thread or its
        coroutine. What it returns is called with how the task ended.
        """
        ...


class TaskObservers:
    """Passes the events of one queue on, in the background."""

    def __init__(self, queue: str, observers: tuple[Observer, ...], clock: Clock):
        self.queue = queue
        self._observers = observers
        self._fan_out = FanOut(observers, clock)
        self._spans = tuple(one for one in observers if isinstance(one, SpanObserver))
        _flush_at_exit()

    def emit(self, event: Event) -> None:
        """Pass an event on, without waiting."""
        _THREAD.put(partial(self._fan_out.observe, event))

    def submitting(self, task: str, number: int, trace: str) -> SubmitSpans:
        """Begin the spans of a submit."""
        spans = SubmitSpans(self, trace)
        for one in self._spans:
            begun = self._fan_out.guard(
                one, one.submitting, self.queue, task, number, trace
            )
            if begun is not None:
                spans.add(one, *begun)
        return spans

    def running(self, event: TaskStarted) -> RunSpans:
        """Announce an attempt, and begin its spans."""
        self.emit(event)
        spans = RunSpans(self)
        for one in self._spans:
            manager = self._fan_out.guard(one, one.running, event)
            if manager is not None:
                spans.enter(one, manager)
        return spans

    def guard(self, observer: object, method: Callable[..., Any], *values: Any) -> Any:
        """Call a method of an observer; None if it raises, which is logged."""
        return self._fan_out.guard(observer, method, *values)

    def end(self, observer: object, method: Callable[..., Any], value: Any) -> None:
        """Have a span end, without waiting."""
        _THREAD.put(partial(self.guard, observer, method, value))

    def flush(self) -> bool:
        """Wait until all events have arrived, and are on their way out of the process.

        For a worker that ends: an exporter that collects before it sends has a method
        `flush`.
        """
        for one in self._observers:
            flush = getattr(one, "flush", None)
            if callable(flush):
                _THREAD.put(partial(self.guard, one, flush))
        return flush_events()


class SubmitSpans:
    """The spans of one submit."""

    def __init__(self, observers: TaskObservers, trace: str) -> None:
        self._observers = observers
        self._ends: list[tuple[object, EndOfSubmit]] = []
        self._given = trace
        self.trace = trace
        """The `traceparent` that travels with the tasks."""

    def add(self, observer: object, trace: str, end: EndOfSubmit) -> None:
        """Add the span of an observer; the first trace that differs is taken."""
        self._ends.append((observer, end))
        if self.trace == self._given and trace:
            self.trace = trace

    def end(self, how: TaskSubmitted | BaseException) -> None:
        """End the spans, and announce what was submitted."""
        if isinstance(how, TaskSubmitted):
            self._observers.emit(how)
        for observer, end in self._ends:
            self._observers.end(observer, end, how)


class RunSpans:
    """The spans of one attempt."""

    __slots__ = ("_entered", "_is_ended", "_observers")

    def __init__(self, observers: TaskObservers) -> None:
        self._observers = observers
        self._entered: list[tuple[object, AbstractContextManager[EndOfRun], Any]] = []
        self._is_ended = False

    def enter(
        self, observer: object, manager: AbstractContextManager[EndOfRun]
    ) -> None:
        """Make the span of an observer current."""
        end = self._observers.guard(observer, manager.__enter__)
        if end is not None:
            self._entered.append((observer, manager, end))

    def leave(self) -> None:
        """Make the spans current no more, where they were entered."""
        for observer, manager, _ in reversed(self._entered):
            self._observers.guard(observer, manager.__exit__, None, None, None)

    def end(self, event: TaskEnded) -> bool:
        """End the spans, once; False if they have ended before."""
        # An attempt that is given up may end itself at the same moment; then both
        # events come, which does no harm.
        if self._is_ended:
            return False
        self._is_ended = True
        self._observers.emit(event)
        for observer, _, end in self._entered:
            self._observers.end(observer, end, event)
        return True


def task_observers(
    queue: str, observers: Iterable[Observer], clock: Clock
) -> TaskObservers | None:
    """Return what passes events on; None if there is nobody to pass them to."""
    given = tuple(observers)
    for one in given:
        if isinstance(one, type) or not callable(getattr(one, "observe", None)):
            raise ConfigurationError(
                f"observers must have a method observe(event), got {one!r}: give"
                " objects such as PrometheusObserver()"
            )
    return TaskObservers(queue, given, clock) if given else None


def flush_events(seconds: float = FLUSH_SECONDS) -> bool:
    """Wait until observers of queues have all events so far; return whether they do."""
    return _THREAD.flush(seconds)


def _tell_dropped(number: int) -> None:
    logging.getLogger(__name__).warning(
        "%d events of tasks were dropped: an observer is too slow", number
    )


@cache
def _flush_at_exit() -> None:
    atexit.register(flush_events)


_THREAD = BackgroundCalls("workstealing-events", _tell_dropped)
