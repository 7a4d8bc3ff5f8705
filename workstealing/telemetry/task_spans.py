"""Spans of tasks, after OpenTelemetry's semantic conventions for messaging.

A submit is a span of kind PRODUCER, a run one of kind CONSUMER. The context of the
first travels in the envelope, as a W3C `traceparent`; the second is its child, and
linked to it, as the conventions ask for. So a request, the tasks that it submits, and
those that they submit are one trace. Spans are named after the task, not after the
queue: a queue has many tasks.

Imports `opentelemetry`: only `OpenTelemetryObserver` imports this module.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
    get_tracer,
    get_tracer_provider,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from workstealing.telemetry.task_events import TaskEnded, TaskStarted, TaskSubmitted
from workstealing.telemetry.task_observers import EndOfRun, EndOfSubmit

__all__ = ("TaskSpans",)

_TRACEPARENT = "traceparent"
_FAILED = ("failed", "dead", "forged", "retry")


class TaskSpans:
    """Begins and ends spans of tasks with a tracer, by default the global one."""

    def __init__(self, tracer: Tracer | None) -> None:
        self._tracer = tracer or get_tracer("workstealing")
        self._propagator = TraceContextTextMapPropagator()

    def submitting(
        self, queue: str, task: str, number: int, trace: str
    ) -> tuple[str, EndOfSubmit]:
        """Begin the span of a submit, in the trace that was given or is current."""
        span = self._tracer.start_span(
            f"submit {task}",
            self._extracted(trace) if trace else None,
            SpanKind.PRODUCER,
            _attributes("submit", "send", queue, task),
            start_time=(began_ns := time.time_ns()),
        )
        if number != 1:
            span.set_attribute("messaging.batch.message_count", number)
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, set_span_in_context(span))
        return carrier.get(_TRACEPARENT, ""), partial(_end_submit, span, began_ns)

    def running(self, event: TaskStarted) -> AbstractContextManager[EndOfRun]:
        """Begin the span of a run; it is current while the context lasts."""
        parent = self._extracted(event.trace) if event.trace else Context()
        creation = get_current_span(parent).get_span_context()
        attributes = _attributes("run", "process", event.queue, event.task)
        attributes["messaging.message.id"] = event.id
        attributes["messaging.client.id"] = event.worker
        attributes["workstealing.task.attempt"] = event.attempt
        span = self._tracer.start_span(
            f"run {event.task}",
            parent,
            SpanKind.CONSUMER,
            attributes,
            [Link(creation)] if creation.is_valid else [],
            start_time=(began_ns := time.time_ns()),
        )
        return _current(span, began_ns)

    @staticmethod
    def flush() -> None:
        """Have the provider send what it has collected."""
        flush = getattr(get_tracer_provider(), "force_flush", None)
        if flush is not None:
            flush()

    def _extracted(self, trace: str) -> Context:
        # Into an empty context: the parent is who submitted, whatever is current here.
        return self._propagator.extract({_TRACEPARENT: trace}, Context())


@contextmanager
def _current(span: Span, began_ns: int) -> Iterator[EndOfRun]:
    token = contexts.attach(set_span_in_context(span))
    try:
        yield partial(_end_run, span, began_ns)
    finally:
        contexts.detach(token)


def _attributes(name: str, kind: str, queue: str, task: str) -> dict[str, Any]:
    return {
        "messaging.system": "workstealing",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": queue,
        "workstealing.task.name": task,
    }


def _end_submit(span: Span, began_ns: int, how: TaskSubmitted | BaseException) -> None:
    if isinstance(how, BaseException):
        _fail(span, how, type(how).__name__)
        span.end()
        return
    if how.number + how.known == 1:
        span.set_attribute("messaging.message.id", how.id)
    if how.known:
        span.set_attribute("workstealing.known", how.known)
    span.end(_end_ns(began_ns, how.seconds))


def _end_run(span: Span, began_ns: int, event: TaskEnded) -> None:
    span.set_attribute("workstealing.task.outcome", event.outcome)
    if event.wait is not None:
        span.set_attribute("workstealing.task.wait", event.wait)
    if event.outcome in _FAILED:
        _fail(span, event.error, event.outcome)
    span.end(_end_ns(began_ns, event.seconds or 0.0))


def _end_ns(began_ns: int, seconds: float) -> int:
    # It ends in the thread of the events, which may be late.
    return began_ns + round(seconds * 1e9)


def _fail(span: Span, error: BaseException | None, otherwise: str) -> None:
    kind = otherwise if error is None else type(error).__qualname__
    span.set_attribute("error.type", kind)
    if error is not None:
        span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, kind))
