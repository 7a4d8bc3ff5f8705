"""Each run of a task has a larger fence than all its runs before."""

from __future__ import annotations

from typing import Any

from workstealing import ExecutionContext, Retry, TaskQueue, Worker, WorkStealer
from workstealing.client.queue_internals import internals_of
from workstealing.queue.worker_calls import exchange, join


def test_a_task_that_is_tried_again_has_a_larger_fence(queue: TaskQueue) -> None:
    fences: list[int] = []

    @queue.task(retries=2)
    def fenced(context: ExecutionContext) -> None:
        fences.append(context.fence)
        if len(fences) < 3:
            raise Retry(after=0.001)

    fenced.submit()
    Worker(queue).run(until_empty="all")

    assert fences == sorted(set(fences))
    assert len(fences) == 3
    assert fences[0] >= 1


def test_who_inherits_the_task_of_a_dead_worker_has_a_larger_fence(
    queue: TaskQueue,
) -> None:
    fences: list[int] = []

    @queue.task
    def fenced(context: ExecutionContext) -> None:
        fences.append(context.fence)

    fenced.submit()
    parts: Any = internals_of(queue)
    keys, settings, call = parts.keys, parts.settings, parts.driver.call
    call(join(keys, settings, "dead.0", "i", {"abilities": []}))
    taken = call(exchange(keys, settings, "dead.0", "i", want=1, keep=0))
    parts.driver.client.zadd(keys.workers, {"dead.0": 1})
    WorkStealer(queue).recruited()
    Worker(queue).run(until_empty=True)

    (lost,) = taken.tasks
    assert fences[0] > int(lost.token)


def test_a_context_outside_of_any_queue_has_a_fence_too() -> None:
    assert ExecutionContext("id", "task", attempt=3).fence == 3
