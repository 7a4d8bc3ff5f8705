"""What a producer of tasks does in each workload, once for sync and asyncio libraries.

A flow yields what a method of the producer returns, and is sent its value: as it is, or
awaited. So both kinds of libraries run the same loop.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any

__all__ = (
    "AsyncProducer",
    "BaseProducer",
    "bursts",
    "round_trips",
    "run",
    "submitting",
)

_AT_ONCE = 50
_WARM_UPS = 5
_LONGEST_SECONDS = 5.0

Flow = Generator[Any, Any, dict[str, Any]]


class BaseProducer(ABC):
    """Submits tasks and waits for results, by means of one library."""

    def connect(self) -> Any:
        """Do what must be done before the first task."""
        return None

    @abstractmethod
    def submit(self, task: str, number: int) -> Any:
        """Submit one task; return what `result` needs."""

    def submit_many(self, task: str, numbers: range) -> Any:
        """Submit many tasks the quickest way that there is."""
        raise NotImplementedError

    @abstractmethod
    def result(self, submitted: Any) -> Any:
        """Wait for the result of a task that was submitted."""

    def pause(self, seconds: float) -> Any:
        """Wait without work."""
        time.sleep(seconds)


class AsyncProducer(BaseProducer):
    """The same for asyncio; without a call for many tasks, 50 are sent at once."""

    async def connect(self) -> None:
        """Do what must be done before the first task."""

    async def submit_many(self, task: str, numbers: range) -> None:
        """Submit many tasks the quickest way that there is."""
        for at in range(0, len(numbers), _AT_ONCE):
            some = numbers[at : at + _AT_ONCE]
            await asyncio.gather(*(self.submit(task, number) for number in some))

    async def pause(self, seconds: float) -> None:
        """Wait without work."""
        await asyncio.sleep(seconds)


def run(producer: BaseProducer, flow: Flow) -> dict[str, Any]:
    """Run a flow to its end; return what it measured."""
    if inspect.iscoroutinefunction(producer.submit):
        import uvloop

        found: dict[str, Any] = uvloop.run(_run_async(producer, flow))
        return found
    producer.connect()
    value: Any = None
    while True:
        try:
            value = flow.send(value)
        except StopIteration as end:
            return dict(end.value)


async def _run_async(producer: BaseProducer, flow: Flow) -> dict[str, Any]:
    await producer.connect()
    value: Any = None
    while True:
        try:
            value = await flow.send(value)
        except StopIteration as end:
            return dict(end.value)


def submitting(producer: BaseProducer, task: str, count: int, is_bulk: bool) -> Flow:
    """Submit *count* tasks; the first opens connections and is not timed."""
    yield producer.submit(task, 0)
    began_at = time.perf_counter()
    if is_bulk:
        yield producer.submit_many(task, range(1, count))
    else:
        for number in range(1, count):
            yield producer.submit(task, number)
    return {"timed": count - 1, "seconds": time.perf_counter() - began_at}


def bursts(producer: BaseProducer, count: int, size: int, every: float) -> Flow:
    """Submit short tasks a few at a time, at a rate that one worker can keep."""
    due_at = time.monotonic()
    for burst in range(count):
        for number in range(burst * size, (burst + 1) * size):
            yield producer.submit("nap", number)
        due_at += every
        yield producer.pause(max(0.0, due_at - time.monotonic()))
    return {}


def round_trips(producer: BaseProducer, count: int, idle_seconds: float) -> Flow:
    """Submit a task and wait for its result, again and again."""
    seconds: list[float] = []
    stops_at = time.monotonic() + _LONGEST_SECONDS + (1 + idle_seconds) * _WARM_UPS
    for number in range(-_WARM_UPS, count):
        if number >= 0 and idle_seconds:
            yield producer.pause(idle_seconds)
        began_at = time.perf_counter()
        submitted = yield producer.submit("noop", number)
        value = yield producer.result(submitted)
        took = time.perf_counter() - began_at
        if value != number:
            raise ValueError(f"the result of task {number} is {value!r}")
        if number >= 0:
            seconds.append(took)
        if not idle_seconds and time.monotonic() > stops_at:
            break
    return {"seconds": seconds, "warm_ups": _WARM_UPS}
