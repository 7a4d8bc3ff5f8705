"""What a producer of tasks does in each workload, once for sync and asyncio libraries.

A flow yields what a method of the producer returns, and is sent its value: as it is, or
awaited. So both kinds of libraries run the same loop.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Generator
from typing import Any

from benchmarks.peers.producer import BaseProducer

__all__ = ("bursts", "round_trips", "run", "submitting")

_WARM_UPS = 5
_LONGEST_SECONDS = 5.0

Flow = Generator[Any, Any, dict[str, Any]]


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
