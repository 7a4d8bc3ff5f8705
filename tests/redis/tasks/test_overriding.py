"""One submission says otherwise than its task: retries and time limits."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from workstealing import AsyncTaskQueue, ExecutionContext, TaskQueue, Worker
from workstealing.errors import ConfigurationError, TaskFailed
from workstealing.tasks.retry import RetryPolicy

SOON = RetryPolicy(retries=5, initial_delay=0.001, max_delay=0.001)


def test_one_submission_is_tried_as_often_as_it_says(queue: TaskQueue) -> None:
    attempts: dict[str, int] = {}

    @queue.task(retries=SOON)
    def fail(which: str, context: ExecutionContext) -> None:
        attempts[which] = context.attempt
        raise ValueError(which)

    never: Any = fail.options(retries=0)
    twice: Any = fail.options(retries=2)
    handles = [never.submit("never"), twice.submit("twice"), fail.submit("plain")]
    Worker(queue).run(until_empty="all")

    assert attempts == {"never": 1, "twice": 3, "plain": 6}
    for handle in handles:
        with pytest.raises(TaskFailed):
            handle.result(timeout=5)


def test_one_submission_has_the_time_limit_that_it_says(queue: TaskQueue) -> None:
    @queue.task(timeout=0.05)
    async def sleep(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "awake"

    longer = sleep.options(timeout=timedelta(seconds=30)).submit(0.2)
    as_ever = sleep.submit(3600)
    Worker(queue).run(until_empty=True)

    assert longer.result(timeout=5) == "awake"
    with pytest.raises(TaskFailed, match=r"longer than 0\.05 s|TimeoutError"):
        as_ever.result(timeout=5)


def test_a_batch_shares_what_its_submission_says(queue: TaskQueue) -> None:
    attempts: list[int] = []

    @queue.task(retries=SOON)
    def fail(context: ExecutionContext) -> None:
        attempts.append(context.attempt)
        raise ValueError

    fail.options(retries=1).submit_many([(), ()])
    Worker(queue).run(until_empty="all")

    assert sorted(attempts) == [1, 1, 2, 2]


async def test_asyncio_submits_with_the_same_options(
    async_queue: AsyncTaskQueue,
) -> None:
    attempts: list[int] = []

    @async_queue.task(retries=SOON)
    def fail(context: ExecutionContext) -> None:
        attempts.append(context.attempt)
        raise ValueError

    submitted: Any = fail.options(retries=1, timeout=5)
    await submitted.submit()
    worker = Worker(async_queue)
    await asyncio.to_thread(worker.run, until_empty="all")

    assert attempts == [1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retries": -1}, "retries must be 0 or more"),
        ({"retries": 1.5}, "retries must be a whole number"),
        ({"timeout": 0}, "timeout must be above 0 seconds"),
        ({"timeout": float("inf")}, "timeout must be above 0 seconds, and at most"),
        ({"timeout": "soon"}, "timeout must be seconds"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(
    queue: TaskQueue, options: dict[str, Any], message: str
) -> None:
    @queue.task
    def idle() -> None: ...

    with pytest.raises(ConfigurationError, match=message):
        idle.options(**options)


def test_a_submission_cannot_add_retries_to_a_task_that_must_not_be_repeated(
    queue: TaskQueue,
) -> None:
    @queue.task(idempotent=False)
    def charge() -> None: ...

    charge.options(retries=0, timeout=1)
    with pytest.raises(ConfigurationError, match="forbids: leave one of the two out"):
        charge.options(retries=1)


@pytest.mark.parametrize("wrong", ["retry", "max_retries"])
def test_who_says_retry_is_told_of_retries(queue: TaskQueue, wrong: str) -> None:
    options: dict[str, Any] = {wrong: 3}

    with pytest.raises(ConfigurationError, match="Did you mean retries="):
        queue.task(**options)(lambda: None)
