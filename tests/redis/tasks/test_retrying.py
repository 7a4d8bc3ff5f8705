"""Tasks that fail are tried again, or given up and kept."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from workstealing import TaskQueue, Worker, WorkerPool
from workstealing._logs import flush_logs
from workstealing.errors import ResultTimeout, TaskFailed
from workstealing.inspecting import Inspector
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.outcome import State
from workstealing.tasks.retry import Retry, RetryPolicy
from workstealing.testing import wait_until

SOON = RetryPolicy(retries=3, initial_delay=0.01, max_delay=0.01)


def drain(queue: TaskQueue) -> None:
    Worker(queue).run(until_empty="all")


def test_a_task_is_tried_again_until_it_succeeds(queue: TaskQueue) -> None:
    attempts: list[int] = []

    @queue.task(retries=SOON)
    def third_time(context: ExecutionContext) -> str:
        attempts.append(context.attempt)
        if len(attempts) < 3:
            raise ValueError
        return "lucky"

    handle = third_time.submit()
    drain(queue)

    assert handle.result(timeout=5) == "lucky"
    assert attempts == [1, 2, 3]
    assert handle.state().attempt == 3
    assert queue.counts().stats["retry"] == 2


def test_promise_6_a_task_that_never_succeeds_is_kept_as_a_dead_letter(
    queue: TaskQueue,
) -> None:
    attempts: list[int] = []

    @queue.task(retries=SOON)
    def never(context: ExecutionContext) -> None:
        attempts.append(context.attempt)
        raise ValueError("no")

    handle = never.submit()
    drain(queue)

    assert attempts == [1, 2, 3, 4]
    with pytest.raises(TaskFailed, match="ValueError: no"):
        handle.result(timeout=5)
    assert queue.counts().dead == 1


def test_a_failure_that_was_told_before_a_replay_is_not_told_after_it(
    queue: TaskQueue,
) -> None:
    is_repaired = [False]

    @queue.task(retries=0)
    def moody() -> str:
        if not is_repaired[0]:
            raise ValueError("broken")
        return "repaired"

    # Whoever has waited once is told of the next outcomes before it asks.
    with pytest.raises(ResultTimeout):
        moody.submit().result(timeout=0.01)
    handle = moody.submit()
    drain(queue)
    is_repaired[0] = True
    assert queue.replay(handle.id)
    drain(queue)

    assert handle.result(timeout=5) == "repaired"


def test_promise_6_a_dead_letter_is_replayed_with_a_clean_slate(
    queue: TaskQueue,
) -> None:
    attempts: list[int] = []

    @queue.task(retries=RetryPolicy(retries=1, initial_delay=0.01, max_delay=0.01))
    def fixed_later(context: ExecutionContext) -> str:
        attempts.append(context.attempt)
        if len(attempts) < 3:
            raise ValueError
        return "fixed"

    handle = fixed_later.submit()
    drain(queue)
    assert handle.state().state is State.FAILED
    assert queue.replay(handle.id)
    assert not queue.replay(handle.id)
    assert handle.state().state is State.WAITING
    drain(queue)

    assert handle.result(timeout=5) == "fixed"
    assert attempts == [1, 2, 1]
    assert queue.counts().dead == 0


def test_a_dead_letter_is_dropped_for_good(queue: TaskQueue) -> None:
    @queue.task
    def fail() -> None:
        raise ValueError

    handle = fail.submit()
    drain(queue)

    assert queue.drop(handle.id)
    assert not queue.drop(handle.id)
    counts = queue.counts()
    assert (counts.tasks, counts.dead) == (0, 0)


def test_a_task_says_when_it_wants_to_be_tried_again(queue: TaskQueue) -> None:
    attempts: list[int] = []

    @queue.task(retries=1)
    def again(context: ExecutionContext) -> int:
        attempts.append(context.attempt)
        if context.attempt == 1:
            raise Retry(after=0.05)
        return context.attempt

    handle = again.submit()
    drain(queue)

    assert handle.result(timeout=5) == 2


def test_who_asks_for_a_retry_without_retries_is_told_why_there_is_none(
    queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.task
    def again() -> None:
        raise Retry(after=1, reason="too early")

    handle = again.submit()
    drain(queue)

    with pytest.raises(TaskFailed) as caught:
        handle.result(timeout=5)
    assert caught.value.message == (
        "try again in 1 s: too early (Retry was raised, but the task has retries=0)"
    )
    assert flush_logs(10)
    assert (
        "failed permanently (Retry was raised, but the task has retries=0)"
        in caplog.text
    )


def test_an_exhausted_retry_names_what_it_was_raised_from(
    queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.task(retries=1)
    def fetch() -> None:
        try:
            raise ConnectionError("503")
        except ConnectionError as error:
            raise Retry(after=0.001) from error

    handle = fetch.submit()
    drain(queue)

    with pytest.raises(TaskFailed) as caught:
        handle.result(timeout=5)
    assert (caught.value.error, caught.value.message) == ("ConnectionError", "503")
    assert 'raise ConnectionError("503")' in caught.value.traceback
    assert flush_logs(10)
    assert "retrying in 0.001 s: ConnectionError: 503" in caplog.text
    assert "and the task has retries=1): ConnectionError: 503" in caplog.text


def test_some_errors_are_not_worth_another_try(queue: TaskQueue) -> None:
    attempts: list[str] = []

    @queue.task(retries=3, retry_on=(OSError,), give_up_on=(FileNotFoundError,))
    def open_file(name: str) -> None:
        attempts.append(name)
        raise FileNotFoundError(name) if name == "absent" else KeyError(name)

    handles = [open_file.submit("absent"), open_file.submit("other")]
    drain(queue)

    assert attempts == ["absent", "other"]
    for handle in handles:
        assert handle.state().state is State.FAILED


def test_a_coroutine_that_takes_too_long_fails_and_the_next_one_runs(
    queue: TaskQueue,
) -> None:
    @queue.task(timeout=0.05)
    async def sleep(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "awake"

    handles = [sleep.submit(3600), sleep.submit(0)]
    drain(queue)

    with pytest.raises(TaskFailed, match="TimeoutError"):
        handles[0].result(timeout=5)
    assert handles[1].result(timeout=5) == "awake"


def test_a_coroutine_that_is_cancelled_from_within_fails_and_the_next_one_runs(
    queue: TaskQueue,
) -> None:
    @queue.task
    async def cancel_itself() -> None:
        raise asyncio.CancelledError

    @queue.task
    async def one() -> int:
        return 1

    handles: list[Any] = [cancel_itself.submit(), one.submit()]
    drain(queue)

    with pytest.raises(TaskFailed, match="CancelledError"):
        handles[0].result(timeout=5)
    assert handles[1].result(timeout=5) == 1


def test_a_worker_logs_what_failed_and_what_becomes_of_it(
    queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.task(name="flaky", retries=1)
    def flaky() -> None:
        raise Retry(after=0.0, reason="not yet")

    handle = flaky.submit()
    drain(queue)

    retried, given_up = [r for r in caplog.records if handle.id in r.getMessage()]
    assert retried.levelname == "WARNING"
    assert "failed in attempt 1, retrying in" in retried.getMessage()
    assert "not yet" in retried.getMessage()
    assert retried.exc_info is None
    assert given_up.levelname == "ERROR"
    assert "failed permanently" in given_up.getMessage()
    assert given_up.exc_info is not None


def test_a_line_per_finished_task_is_logged_at_info(
    queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.task(name="quick")
    def quick() -> None:
        pass

    handle = quick.submit()
    with caplog.at_level(logging.INFO):
        drain(queue)

    (done,) = [r for r in caplog.records if handle.id in r.getMessage()]
    assert done.levelname == "INFO"
    assert "(quick@1) done in" in done.getMessage()


def test_a_task_that_waits_for_its_next_attempt_says_why_the_last_ones_failed(
    queue: TaskQueue,
) -> None:
    @queue.task(retries=RetryPolicy(retries=9, initial_delay=0.01, max_delay=60))
    def flaky(context: ExecutionContext) -> None:
        if context.attempt == 5:
            raise Retry(86_400, "not before tomorrow")
        raise OSError(f"disk {context.attempt} is full" + "!" * 500)

    handle = flaky.submit()
    with WorkerPool(queue, workers=1):
        wait_until(
            lambda: Inspector(queue).cat(handle.id).due_ms > _tomorrow(),
            30,
            "five failed attempts",
        )
    inspector = Inspector(queue)

    (row,) = inspector.ls("later")
    seen = inspector.cat(handle.id)

    assert "not before tomorrow" in row.note
    assert [one.attempt for one in seen.failures] == [5, 4, 3]
    assert seen.failures[1].error.startswith("OSError: disk 4 is full!")
    assert len(seen.failures[1].error) < 300
    assert "OSError" in seen.failures[1].traceback
    assert "not before tomorrow" in str(inspector.why(handle.id))


def _tomorrow() -> float:
    return (time.time() + 80_000) * 1000
