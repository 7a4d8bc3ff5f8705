"""A task that is run later, gives up, and tells of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from workstealing import (
    AsyncTaskQueue,
    ClientContext,
    ExecutionContext,
    GiveUp,
    Snooze,
    TaskQueue,
    Worker,
    WorkerPool,
)
from workstealing._logs import flush_logs
from workstealing.errors import ConfigurationError, TaskExpired, TaskFailed
from workstealing.tasks.outcome import State


def drain(queue: TaskQueue | AsyncTaskQueue) -> None:
    Worker(queue).run(until_empty="all")


@pytest.mark.parametrize(
    "until",
    [
        lambda: 0.01,
        lambda: timedelta(milliseconds=10),
        lambda: datetime.now(timezone.utc) + timedelta(milliseconds=10),
        lambda: 0,
    ],
)
def test_a_task_that_snoozes_is_run_later_in_the_same_attempt(
    queue: TaskQueue, until: Callable[[], Any]
) -> None:
    runs: list[tuple[int, int]] = []

    @queue.task  # retries=0: to snooze takes none
    def poll(context: ExecutionContext) -> str:
        runs.append((context.attempt, context.fence))
        if len(runs) < 4:
            raise Snooze(until(), reason="not ready")
        return "ready"

    handle = poll.submit()
    drain(queue)

    assert handle.result(timeout=5) == "ready"
    assert [attempt for attempt, _ in runs] == [1, 1, 1, 1]
    fences = [fence for _, fence in runs]
    assert fences == sorted(set(fences))
    assert queue.counts().stats.get("retry", 0) == 0


def test_a_task_that_snoozes_long_waits_as_a_delayed_one(queue: TaskQueue) -> None:
    @queue.task
    def patient() -> None:
        raise Snooze(timedelta(hours=1))

    handle = patient.submit()
    Worker(queue).run(until_empty=True)

    state = handle.state()
    assert (state.state, state.attempt) == (State.DELAYED, 1)
    assert handle.cancel() == "cancelled"


def test_the_deadline_of_its_caller_ends_the_snoozing(queue: TaskQueue) -> None:
    @queue.task
    def for_ever() -> None:
        raise Snooze(0.05)

    handle = for_ever.options(context=ClientContext(deadline=0.2)).submit()
    drain(queue)

    with pytest.raises(TaskExpired, match="it did not start by"):
        handle.result(timeout=5)


def test_a_task_that_must_not_be_repeated_cannot_snooze(queue: TaskQueue) -> None:
    @queue.task(idempotent=False)
    def charge() -> None:
        raise Snooze(0.01, reason="bank closed")

    handle = charge.submit()
    drain(queue)

    with pytest.raises(TaskFailed, match=r"bank closed \(Snooze was raised by a task"):
        handle.result(timeout=5)


def test_a_task_that_gives_up_is_not_tried_again(queue: TaskQueue) -> None:
    runs: list[int] = []

    @queue.task(retries=5)
    def find(context: ExecutionContext) -> None:
        runs.append(context.attempt)
        raise GiveUp("there is no such user")

    handle = find.submit()
    drain(queue)

    assert runs == [1]
    with pytest.raises(TaskFailed, match="there is no such user"):
        handle.result(timeout=5)
    assert handle.state().reason.endswith("GiveUp: there is no such user")
    assert queue.counts().dead == 1


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_function_is_told_once_that_a_task_was_given_up_and_why(
    queue: TaskQueue, kind: Any
) -> None:
    told: list[tuple[str, int, str]] = []

    def tell(context: ExecutionContext, reason: str) -> None:
        told.append((context.id, context.attempt, reason))

    @queue.task(retries=1, retry_on=(OSError,), on_give_up=tell)
    async def fail(context: ExecutionContext) -> None:
        raise OSError("far") if context.attempt < 2 else ValueError("no")

    @queue.task(on_give_up=tell)
    def succeed() -> int:
        return 1

    @queue.task(on_give_up=tell)
    def mistyped() -> int:
        unspeakable: Any = object()
        return unspeakable  # type: ignore[no-any-return]

    handles: list[Any] = [fail.submit(), mistyped.submit(), succeed.submit()]
    with WorkerPool(queue, kind=kind, workers=1):
        queue.wait(timeout=20)

    by_id = {task_id: (attempt, reason) for task_id, attempt, reason in told}
    assert len(told) == 2
    assert by_id[handles[0].id] == (
        2,
        "ValueError: no (ValueError is not among retry_on)",
    )
    assert "returned an object that has no form in JSON" in by_id[handles[1].id][1]


def test_a_task_is_submitted_with_the_id_of_the_one_that_was_given_up(
    queue: TaskQueue,
) -> None:
    told: list[tuple[str, str]] = []

    @queue.task
    def alert(task_id: str, reason: str) -> None:
        told.append((task_id, reason))

    @queue.task(on_give_up=alert)
    def fail() -> None:
        raise GiveUp("gone")

    handle = fail.submit()
    drain(queue)

    assert told == [(handle.id, "gone (GiveUp was raised)")]


async def test_a_task_of_an_asyncio_queue_is_submitted_too(
    async_queue: AsyncTaskQueue,
) -> None:
    told: list[str] = []

    @async_queue.task
    async def alert(task_id: str, reason: str) -> None:
        told.append(task_id)

    @async_queue.task(on_give_up=alert)
    async def fail() -> None:
        raise GiveUp("gone")

    handle = await fail.submit()
    await asyncio.to_thread(drain, async_queue)

    assert told == [handle.id]


def test_a_listener_that_fails_changes_nothing(
    queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    def tell(context: ExecutionContext, reason: str) -> None:
        raise RuntimeError("no network")

    @queue.task(on_give_up=tell)
    def fail() -> None:
        raise ValueError("no")

    handle = fail.submit()
    drain(queue)

    with pytest.raises(TaskFailed, match="ValueError: no"):
        handle.result(timeout=5)
    assert flush_logs(10)
    assert "nobody was told: RuntimeError: no network" in caplog.text


def test_who_cannot_be_told_is_refused_at_once(queue: TaskQueue) -> None:
    @queue.task
    def alert(number: int) -> None: ...

    async def tell(context: ExecutionContext, reason: str) -> None: ...

    for wrong, message in (
        (alert, "must take the id of the task"),
        (tell, "to await something, make it a task"),
        ("alert", "must be a function or a task"),
    ):
        listener: Any = wrong
        with pytest.raises(ConfigurationError, match=message):
            queue.task(name="x", on_give_up=listener)(lambda: None)
