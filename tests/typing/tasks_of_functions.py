"""What a task of a function returns, with options and without; checked, never run."""

from __future__ import annotations

from typing_extensions import assert_type

from workstealing import AsyncTaskHandle, AsyncTaskQueue, Task, TaskHandle, TaskQueue
from workstealing.testing import MemoryQueue

queue, asyncio_queue, memory = TaskQueue("q"), AsyncTaskQueue("a"), MemoryQueue("m")


@queue.task
async def bare(url: str) -> int:
    return len(url)


@queue.task()
async def without_options(url: str) -> int:
    return len(url)


@queue.task(retries=2)
async def with_options(url: str) -> int:
    return len(url)


@queue.every(60)
@queue.task(retries=2)
async def scheduled(url: str = "") -> int:
    return len(url)


@queue.task(retries=2)
def plain(url: str) -> int:
    return len(url)


@memory.task(retries=2)
async def in_memory(url: str) -> int:
    return len(url)


assert_type(bare.submit("u"), TaskHandle[int])
assert_type(without_options.submit("u"), TaskHandle[int])
assert_type(with_options.submit("u"), TaskHandle[int])
assert_type(with_options.options(delay=1).submit("u"), TaskHandle[int])
assert_type(with_options.submit_many([("u",)]), list[TaskHandle[int]])
assert_type(scheduled.submit(), TaskHandle[int])
assert_type(plain.submit("u"), TaskHandle[int])
assert_type(in_memory.submit("u"), TaskHandle[int])
assert_type(plain.handle("17"), TaskHandle[int])
assert_type(bare.handle("17").result(), int)
with_options.submit(1)  # type: ignore[arg-type]


@queue.every(60)
def noted(url: str = "") -> int:
    return len(url)


assert_type(plain("u"), int)
assert_type(plain.options(delay=1)("u"), int)
assert_type(noted(), int)
assert_type((plain.s("u") | plain.s("v")).submit().result(), int)
plain(1)  # type: ignore[arg-type]


async def called_directly() -> None:
    assert_type(await bare("u"), int)
    assert_type(await without_options("u"), int)
    assert_type(await with_options("u"), int)
    assert_type(await with_options.options(delay=1)("u"), int)
    assert_type(await scheduled("u"), int)
    assert_type(await in_memory("u"), int)
    assert_type(await asyncio_bare("u"), int)
    assert_type(await asyncio_with_options("u"), int)
    assert_type(await asyncio_scheduled("u"), int)
    assert_type(asyncio_plain("u"), int)


def taken_as_a_parameter(task: Task[[str], int]) -> int:
    return task("u")


taken_as_a_parameter(plain)
taken_as_a_parameter(bare)


@asyncio_queue.task
async def asyncio_bare(url: str) -> int:
    return len(url)


@asyncio_queue.task(retries=2)
async def asyncio_with_options(url: str) -> int:
    return len(url)


@asyncio_queue.every(60)
@asyncio_queue.task(retries=2)
async def asyncio_scheduled(url: str = "") -> int:
    return len(url)


@asyncio_queue.task(retries=2)
def asyncio_plain(url: str) -> int:
    return len(url)


async def story() -> None:
    assert_type(await asyncio_bare.submit("u"), AsyncTaskHandle[int])
    assert_type(await asyncio_with_options.submit("u"), AsyncTaskHandle[int])
    assert_type(await asyncio_plain.submit("u"), AsyncTaskHandle[int])
    handle = await asyncio_with_options.submit("u")
    assert_type(await handle.result(timeout=1), int)


assert_type(asyncio_plain.handle("17"), AsyncTaskHandle[int])
