"""Tasks that run beside each other in one process tell their own story each."""

# ruff: noqa: T201 - what is printed is what this is about

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from workstealing import TaskQueue
from workstealing.errors import TaskDead
from workstealing.tasks.context import ExecutionContext
from workstealing.testing import wait_until
from workstealing.workers.worker_pool import WorkerPool

KINDS: list[Any] = ["threads", "asyncio"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_logs_of_tasks_in_one_pool_do_not_mix(queue: TaskQueue, kind: Any) -> None:
    @queue.task(name="chat")
    def chat(number: int, ctx: ExecutionContext) -> None:
        for line in range(20):
            print(number, line)
            ctx.logger.info("%d %d", number, line)

    @queue.task(name="chat_async")
    async def chat_async(number: int, ctx: ExecutionContext) -> None:
        for line in range(20):
            print(number, line)
            await asyncio.sleep(0)
            ctx.logger.info("%d %d", number, line)

    pool = WorkerPool(queue, workers=4, kind=kind)
    handles = [
        task.options(log=True).submit(number)
        for number in range(4)
        for task in (chat, chat_async)
    ]
    pool.start()
    try:
        for handle in handles:
            handle.result(timeout=20)
    finally:
        pool.stop()

    for place, handle in enumerate(handles):
        told = [record.message for record in handle.logs()]
        assert told == [f"{place // 2} {line}" for line in range(20) for _ in "ab"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_hot_stop_does_not_hand_back_what_must_not_be_run_twice(
    queue: TaskQueue, kind: Any
) -> None:
    begun: list[bool] = []

    @queue.task(name="pay", idempotent=False)
    def pay() -> None:
        begun.append(True)
        wait_until(lambda: False, 20, "the hot stop")

    pool = WorkerPool(queue, workers=2, kind=kind)
    handle = pay.submit()
    pool.start()
    try:
        wait_until(lambda: begun, 10, "it to begin")
    finally:
        pool.stop(hot=True)

    with pytest.raises(TaskDead, match="outcome unknown: its worker was stopped"):
        handle.result(timeout=10)
    assert begun == [True]
