"""The asyncio face tells the same stories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timezone
from threading import Event
from typing import Any

import pytest
from redis import Redis

from workstealing import AsyncTaskQueue, TaskQueue, Worker
from workstealing.client import queue_outcomes
from workstealing.client.queue_internals import internals_of
from workstealing.errors import (
    InputEnded,
    PayloadInvalid,
    ResultTimeout,
    TaskCancelled,
    TaskDead,
    TaskFailed,
    TaskNotFound,
)
from workstealing.tasks.outcome import State


async def until(condition: Callable[[], Any], what: str) -> None:
    """Ask again and again, and let others run meanwhile."""
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError(f"waited for {what}")


class Tasks:
    """The same tasks on both faces: those who submit await, the worker does not."""

    def __init__(self, async_queue: AsyncTaskQueue, queue: TaskQueue) -> None:
        self.release = Event()
        release = self.release

        def double(number: int) -> int:
            return 2 * number

        def fail() -> None:
            raise ValueError("no")

        def wait() -> str:
            release.wait(20)
            return "done"

        for function in (double, fail, wait):
            queue.task(function)
        self.double = async_queue.task(double)
        self.fail = async_queue.task(fail)
        self.wait = async_queue.task(wait)


@pytest.fixture
def tasks(async_queue: AsyncTaskQueue, queue: TaskQueue) -> Tasks:
    return Tasks(async_queue, queue)


async def test_tasks_are_submitted_and_their_results_awaited(
    async_queue: AsyncTaskQueue, queue: TaskQueue, tasks: Tasks, crew: Any
) -> None:
    crew.start(queue)
    one = await tasks.double.submit(1)
    many = await tasks.double.submit_many([(2,), {"number": 3}])
    later = await tasks.double.submit_in(0.01, 4)
    past = datetime(2001, 1, 1, tzinfo=timezone.utc)
    at = await tasks.double.submit_at(past, 5)
    twice = [await tasks.double.options(id="six").submit(6) for _ in range(2)]

    handles = [one, *many, later, at, *twice]
    results = await asyncio.gather(*(handle.result(timeout=20) for handle in handles))

    assert results == [2, 4, 6, 8, 10, 12, 12]
    assert (await async_queue.wait(timeout=20)).outcomes == 6
    assert tasks.double(7) == 14


async def test_every_end_of_a_task_is_an_answer(
    async_queue: AsyncTaskQueue, queue: TaskQueue, tasks: Tasks, crew: Any
) -> None:
    failed, cancelled = await tasks.fail.submit(), await tasks.double.submit(1)
    assert (await cancelled.state()).state is State.WAITING
    with pytest.raises(ResultTimeout, match="it is waiting"):
        await cancelled.result(timeout=0.01)
    assert await cancelled.cancel() == "cancelled"
    client: Any = internals_of(queue).driver.client
    client.hset(internals_of(queue).keys.task, "broken", "{")
    client.rpush(internals_of(queue).keys.inboxes[1], "broken")
    crew.start(queue)

    with pytest.raises(TaskFailed, match="ValueError"):
        await failed.result(timeout=20)
    with pytest.raises(TaskCancelled):
        await cancelled.result(timeout=20)
    with pytest.raises(TaskDead, match="not an envelope"):
        await async_queue.handle("broken").result(timeout=20)
    with pytest.raises(TaskNotFound):
        await async_queue.handle("nobody").result(timeout=20)
    with pytest.raises(PayloadInvalid, match="number"):
        await tasks.double.submit("two")  # type: ignore[arg-type]
    assert (await async_queue.counts()).dead == 2
    assert await async_queue.replay(failed.id)
    assert await async_queue.drop("broken")


async def test_a_queue_whose_input_ended_takes_no_more(
    async_queue: AsyncTaskQueue, tasks: Tasks
) -> None:
    await async_queue.end_input()
    with pytest.raises(InputEnded):
        await tasks.double.submit(1)
    await async_queue.reopen_input()
    await tasks.double.submit(1)


async def test_many_waits_at_once_share_one_subscription_and_are_pushed_to(
    async_queue: AsyncTaskQueue,
    queue: TaskQueue,
    tasks: Tasks,
    crew: Any,
    redis_client: Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whoever only looked would come too late.
    monkeypatch.setattr(queue_outcomes, "_LOOK_SECONDS", 3600.0)
    handles = [await tasks.wait.submit() for _ in range(10)]
    waits = [asyncio.create_task(handle.result(timeout=20)) for handle in handles]
    await until(
        lambda: redis_client.hlen(internals_of(queue).keys.awaited) == 10,
        "all to be awaited",
    )
    channels = redis_client.pubsub_channels(internals_of(queue).keys.channel("*"))
    crew.start(queue)
    tasks.release.set()

    assert await asyncio.gather(*waits) == ["done"] * 10
    assert len(channels) == 1
    await internals_of(async_queue).driver.close()
    await until(
        lambda: not redis_client.pubsub_channels(internals_of(queue).keys.channel("*")),
        "the subscription to end",
    )


async def test_waits_whose_subscription_is_cut_make_another(
    queue: TaskQueue,
    tasks: Tasks,
    crew: Any,
    redis_client: Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_outcomes, "_LOOK_SECONDS", 3600.0)

    def channels() -> set[bytes]:
        return set(redis_client.pubsub_channels(internals_of(queue).keys.channel("*")))

    handles = [await tasks.wait.submit() for _ in range(3)]
    waits = [asyncio.create_task(handle.result(timeout=20)) for handle in handles]
    await until(
        lambda: redis_client.hlen(internals_of(queue).keys.awaited) == 3, "three waits"
    )
    former = channels()
    redis_client.client_kill_filter(_type="pubsub")
    await until(lambda: channels() - former, "another subscription")
    tasks.release.set()
    crew.start(queue)

    assert await asyncio.gather(*waits) == ["done"] * 3


def test_a_plain_worker_serves_an_asyncio_queue(
    redis_server: Any, key_prefix: str
) -> None:
    queue = AsyncTaskQueue(key_prefix, redis_server.url)
    twin = TaskQueue(key_prefix, redis_server.url, registry=queue.registry)

    @twin.task(name="double")
    def double(number: int) -> int:
        return 2 * number

    handle = double.submit(4)
    Worker(queue).run(until_empty=True)

    assert handle.result(timeout=5) == 8
    twin.close()
