"""Observers of a queue: what they raise or how long they take harms nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event as Signal
from threading import current_thread
from typing import Any

import pytest

from workstealing import TaskQueue
from workstealing._logs import MOST_CALLS
from workstealing.clock import SYSTEM_CLOCK
from workstealing.errors import ConfigurationError
from workstealing.telemetry import (
    Event,
    LeaseLost,
    PrometheusObserver,
    SpanObserver,
    TaskEnded,
    TaskStarted,
    TaskSubmitted,
    flush_events,
)
from workstealing.telemetry.task_observers import TaskObservers

LOST = LeaseLost("mail", "w.0", 12.0)
BEGUN = TaskStarted("mail", "send", "1", 1, "w.0", None, "")
ENDED = TaskEnded("mail", "send", "1", 1, "w.0", "done", None, 0.1, None)


class Recording:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.threads: set[str] = set()

    def observe(self, event: Event) -> None:
        self.events.append(event)
        self.threads.add(current_thread().name)


class Failing:
    """Raises whatever it is asked."""

    def observe(self, event: Event) -> None:
        raise RuntimeError("out of order")

    def submitting(self, *_: object) -> Any:
        raise RuntimeError("out of order")

    def running(self, event: TaskStarted) -> Any:
        raise RuntimeError("out of order")

    def flush(self) -> None:
        raise RuntimeError("out of order")


class Spans(Recording):
    """Makes spans that are words."""

    def __init__(self, trace: str = "") -> None:
        super().__init__()
        self.trace = trace
        self.said: list[object] = []

    def submitting(self, queue: str, task: str, number: int, trace: str) -> Any:
        self.said.append((queue, task, number, trace))
        return self.trace, self.said.append

    @contextmanager
    def running(self, event: TaskStarted) -> Iterator[Any]:
        self.said.append("entered")
        yield self.said.append
        self.said.append("left")


def _of(*observers: Any) -> TaskObservers:
    return TaskObservers("mail", observers, SYSTEM_CLOCK)


def test_events_arrive_in_order_in_a_thread_of_their_own() -> None:
    recording = Recording()
    observers = _of(recording)

    for number in range(100):
        observers.emit(LeaseLost("mail", str(number), 1.0))

    assert flush_events(10)
    workers = [event.worker for event in recording.events]  # type: ignore[union-attr]
    assert workers == [str(number) for number in range(100)]
    assert recording.threads == {"workstealing-events"}


def test_one_that_raises_is_logged_once_and_the_others_get_the_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recording = Recording()
    observers = _of(Failing(), recording)

    for _ in range(5):
        observers.emit(LOST)
    observers.submitting("send", 1, "").end(TaskSubmitted("mail", "send", "1", 1, 0, 0))
    run = observers.running(BEGUN)
    run.end(ENDED)
    run.leave()

    assert observers.flush()
    assert len(recording.events) == 8
    logged = [record for record in caplog.records if "Failing" in record.getMessage()]
    assert len(logged) == 1


def test_nobody_waits_for_one_that_blocks_and_what_is_dropped_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    entered, released = Signal(), Signal()
    seen: list[Event] = []

    class Blocking:
        def observe(self, event: Event) -> None:
            entered.set()
            released.wait(20)
            seen.append(event)

    observers = _of(Blocking())
    observers.emit(LOST)
    assert entered.wait(20)

    for _ in range(MOST_CALLS + 7):
        observers.emit(LOST)
    assert not flush_events(0.01)
    released.set()

    assert flush_events(20)
    assert len(seen) == 1 + MOST_CALLS
    assert "7 events of tasks were dropped" in caplog.text


def test_a_span_is_entered_by_the_caller_and_ends_with_the_event() -> None:
    spans = Spans()
    observers = _of(spans)

    run = observers.running(BEGUN)
    run.end(ENDED)
    run.leave()

    assert flush_events(10)
    assert sorted(map(str, spans.said)) == sorted(["entered", "left", str(ENDED)])
    assert spans.events == [BEGUN, ENDED]


def test_an_attempt_ends_once() -> None:
    spans = Spans()
    run = _of(spans).running(BEGUN)

    assert [run.end(ENDED), run.end(ENDED)] == [True, False]

    assert flush_events(10)
    assert spans.said.count(ENDED) == 1


def test_the_trace_of_the_first_span_travels_with_the_task() -> None:
    first, second = Spans("00-1"), Spans("00-2")

    spans = _of(Spans(), first, second).submitting("send", 2, "00-0")

    assert spans.trace == "00-1"
    assert first.said == [("mail", "send", 2, "00-0")]
    assert isinstance(first, SpanObserver)


def test_without_a_span_the_trace_of_the_caller_stays() -> None:
    assert _of(Recording()).submitting("send", 1, "00-0").trace == "00-0"


@pytest.mark.parametrize("wrong", ["prometheus", None, PrometheusObserver, object()])
def test_what_is_no_observer_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"a method observe\(event\)"):
        TaskQueue("mail", observers=[wrong])
