"""How users write tests of their tasks; checked by mypy, never run."""

from __future__ import annotations

from datetime import datetime, timedelta

from typing_extensions import assert_type

from workstealing import AsyncTaskQueue, TaskHandle, TaskQueue
from workstealing.testing import Memory, MemoryQueue, Ran, SubmittedTask, in_memory

queue = MemoryQueue("q", lease=5)


@queue.task
def double(number: int) -> int:
    return number * 2


assert_type(double.submit(1), TaskHandle[int])
double.submit("1")  # type: ignore[arg-type]

as_any_other: TaskQueue = queue
assert_type(queue.drain(), list[Ran])
assert_type(queue.submitted, list[SubmittedTask])
assert_type(queue.assert_submitted(double, 1), SubmittedTask)
assert_type(queue.now, datetime)
queue.drain(until="all", raises=True)
queue.drain(until="tomorrow")  # type: ignore[arg-type]
queue.advance(timedelta(hours=1))
queue.advance("an hour")  # type: ignore[arg-type]
queue.crash(double, at="begin")
queue.crash(double, at="middle")  # type: ignore[arg-type]
queue.assert_submitted(double.submit)  # type: ignore[arg-type]

with in_memory(TaskQueue("a"), AsyncTaskQueue("b")) as memory:
    assert_type(memory, Memory)
    assert_type(memory.drain(), list[Ran])


async def story() -> None:
    assert_type(await memory.drain_async(until="all"), list[Ran])


in_memory("a")  # type: ignore[arg-type]
