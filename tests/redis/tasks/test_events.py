"""A handle tells what happens to a task: log lines, progress, and the end."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from workstealing import (
    AsyncTaskQueue,
    ClientContext,
    ExecutionContext,
    LogRecord,
    Progress,
    TaskClient,
    TaskQueue,
    TaskState,
    Worker,
)
from workstealing.errors import ResultTimeout, TaskNotFound
from workstealing.tasks.outcome import State


def told(events: list[Any]) -> list[str]:
    """Return events in short."""
    words = []
    for event in events:
        if isinstance(event, LogRecord):
            words.append(f"log {event.message}")
        elif isinstance(event, Progress):
            words.append(f"progress {event}")
        else:
            assert isinstance(event, TaskState)
            words.append(f"end {event.state.value}")
    return words


def paint(rooms: int, ctx: ExecutionContext) -> int:
    for room in range(rooms):
        ctx.logger.info("room %d", room)
    ctx.progress(rooms, rooms)
    return rooms


def test_events_come_in_order_and_the_end_is_the_last(
    queue: TaskQueue, crew: Any
) -> None:
    seen, go = Event(), Event()

    @queue.task
    def tidy(ctx: ExecutionContext) -> None:
        ctx.logger.info("one")
        ctx.progress(1, 2)
        seen.set()
        assert go.wait(10)
        ctx.logger.info("two")
        ctx.progress(2, 2)

    handle: Any = tidy.options(log=True)
    handle = handle.submit()
    crew.start(queue)
    assert seen.wait(10)
    events = []
    for event in handle.events(timeout=20):
        events.append(event)
        if isinstance(event, Progress):
            go.set()

    assert told(events) == [
        "log one",
        "progress 1 of 2",
        "log two",
        "progress 2 of 2",
        "end done",
    ]


def test_a_task_that_has_ended_tells_its_log_and_its_end(queue: TaskQueue) -> None:
    task: Any = queue.task(paint)
    handle = task.options(log=True).submit(700)
    Worker(queue).run(until_empty=True)

    events = told(list(handle.events(timeout=5)))

    assert events[:2] == ["log room 0", "log room 1"]
    assert len(events) == 701
    assert events[-1] == "end done"


def test_a_failure_is_an_end_not_an_error(queue: TaskQueue) -> None:
    @queue.task
    def fail() -> None:
        raise ValueError("no")

    handle = fail.submit()
    Worker(queue).run(until_empty=True)

    (end,) = handle.events(timeout=5)

    assert isinstance(end, TaskState)
    assert (end.state, end.reason) == (State.FAILED, "ValueError: no")


def test_a_task_that_does_not_end_in_time_or_is_unknown_raises(
    queue: TaskQueue,
) -> None:
    @queue.task
    def idle() -> None: ...

    with pytest.raises(
        ResultTimeout, match=r"did not end within 0\.1 s: it is waiting"
    ):
        list(idle.submit().events(timeout=0.1))
    with pytest.raises(TaskNotFound):
        list(queue.handle("nobody").events(timeout=5))


async def test_asyncio_iterates_too(async_queue: AsyncTaskQueue) -> None:
    task: Any = async_queue.task(paint)
    handle = await task.options(log=True).submit(2)
    worker = Worker(async_queue)
    running = asyncio.create_task(asyncio.to_thread(worker.run, until_empty=True))

    events = [event async for event in handle.events(timeout=20)]
    await running

    words = told(events)
    assert [word for word in words if word.startswith("log")] == [
        "log room 0",
        "log room 1",
    ]
    assert words[-1] == "end done"


def test_a_task_of_this_process_has_events_too(queue: TaskQueue) -> None:
    queue.task(name="paint")(paint)
    with ThreadPoolExecutor(1) as pool:
        client = TaskClient.local(queue.registry, pool=pool)

        handle = client.submit(ClientContext(), "paint", {"rooms": 2}, int)

        assert told(list(handle.events(timeout=10)))[-1] == "end done"
