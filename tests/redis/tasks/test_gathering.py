"""The results of many tasks are awaited together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from workstealing import (
    AsyncTaskQueue,
    GroupHandle,
    TaskQueue,
    Worker,
    async_gather_results,
    gather_results,
)
from workstealing.client.queue_internals import internals_of
from workstealing.errors import (
    ConfigurationError,
    ResultTimeout,
    TaskFailed,
    TaskNotFound,
)


def half(number: int) -> int:
    if number % 2:
        raise ValueError(number)
    return number // 2


def test_results_come_in_the_order_of_their_handles(
    queue: TaskQueue, crew: Any
) -> None:
    task = queue.task(half)
    handles = task.submit_many([(2 * number,) for number in range(1000)])
    crew.start(queue)

    results = gather_results([*handles, handles[0]], timeout=30)

    assert results == [*range(1000), 0]


def test_results_that_are_there_cost_a_few_calls(queue: TaskQueue) -> None:
    task = queue.task(half)
    handles = task.submit_many([(2 * number,) for number in range(1000)])
    Worker(queue).run(until_empty=True)
    client = internals_of(queue).driver.client
    before = client.info("commandstats")["cmdstat_evalsha"]["calls"]

    gather_results(handles, timeout=5)

    after = client.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert after - before <= 12


def test_the_first_error_is_raised_or_all_are_returned(queue: TaskQueue) -> None:
    task = queue.task(half)
    handles = task.submit_many([(0,), (1,), (2,)])
    Worker(queue).run(until_empty=True)

    with pytest.raises(TaskFailed, match="ValueError: 1"):
        gather_results(handles, timeout=5)
    first, second, third = gather_results(handles, timeout=5, return_exceptions=True)

    assert (first, third) == (0, 1)
    assert isinstance(second, TaskFailed)


def test_what_does_not_end_in_time_is_told(queue: TaskQueue) -> None:
    task = queue.task(half)
    done = task.submit(4)
    Worker(queue).run(until_empty=True)
    waiting = task.submit(6)

    with pytest.raises(ResultTimeout, match=r"within 0\.1 s: it is waiting"):
        gather_results([done, waiting], timeout=0.1)
    first, second, third = gather_results(
        [done, waiting, queue.handle("nobody")], timeout=0.1, return_exceptions=True
    )

    assert first == 2
    assert isinstance(second, ResultTimeout)
    assert isinstance(third, TaskNotFound)


async def test_asyncio_gathers_too(async_queue: AsyncTaskQueue) -> None:
    task = async_queue.task(half)
    handles = await task.submit_many([(2 * number,) for number in range(300)])
    worker = Worker(async_queue)
    running = asyncio.create_task(asyncio.to_thread(worker.run, until_empty=True))

    assert await async_gather_results(handles, timeout=30) == list(range(300))
    assert await async_gather_results([]) == []
    await running


def test_handles_of_the_other_kind_of_queue_are_refused(
    queue: TaskQueue, async_queue: AsyncTaskQueue
) -> None:
    with pytest.raises(ConfigurationError, match="await async_gather_results"):
        gather_results([async_queue.handle("a")])  # type: ignore[list-item]
    with pytest.raises(ConfigurationError, match=": gather_results"):
        asyncio.run(async_gather_results([queue.handle("a")]))  # type: ignore[list-item]


def test_what_cannot_be_gathered_is_refused(
    queue: TaskQueue, make_queue: Callable[..., TaskQueue]
) -> None:
    assert gather_results([]) == []
    with pytest.raises(ConfigurationError, match="of several queues"):
        gather_results([queue.handle("a"), make_queue().handle("b")])
    members = GroupHandle[Any](internals_of(queue), "g", [], [])
    for one in (members, "a", queue):
        with pytest.raises(ConfigurationError, match="expected the handle of a task"):
            gather_results([one])  # type: ignore[list-item]
    with pytest.raises(ConfigurationError, match="retention=0"):
        gather_results([make_queue(retention=0).handle("a")])
