"""Cancelling: at once what waits, by asking what runs, and it stays cancelled."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from workstealing import TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.errors import TaskCancelled
from workstealing.queue import worker_calls
from workstealing.queue.worker_calls import exchange
from workstealing.tasks.context import ExecutionContext, current_context
from workstealing.tasks.outcome import State
from workstealing.tasks.retry import RetryPolicy
from workstealing.testing import wait_until


def drain(queue: TaskQueue) -> None:
    Worker(queue).run(until_empty=True)


def test_a_waiting_and_a_delayed_task_are_cancelled_at_once(queue: TaskQueue) -> None:
    runs: list[int] = []

    @queue.task
    def note(number: int) -> None:
        runs.append(number)

    waiting, delayed, other = note.submit(1), note.submit_in(0.01, 2), note.submit(3)
    assert waiting.cancel() == "cancelled"
    assert delayed.cancel() == "cancelled"
    drain(queue)

    assert runs == [3]
    assert waiting.cancel() == "ended"
    assert other.cancel() == "ended"
    for handle in (waiting, delayed):
        assert handle.state().state is State.CANCELLED
        with pytest.raises(TaskCancelled):
            handle.result(timeout=5)


def test_a_task_in_the_deque_of_a_worker_is_cancelled_at_once(
    queue: TaskQueue, crew: Any
) -> None:
    release, runs = Event(), []

    @queue.task
    def wait(number: int) -> None:
        runs.append(number)
        release.wait(20)

    handles = wait.submit_many([(n,) for n in range(8)])
    crew.start(queue)
    crew.start(queue)

    def assigned() -> list[Any]:
        return [h for h in handles if h.state().state is State.ASSIGNED]

    chosen = wait_until(assigned, 10, "some to be assigned")[-1]
    assert chosen.cancel() == "cancelled"
    release.set()
    queue.wait(timeout=20)

    assert handles.index(chosen) not in runs
    assert len(runs) == 7


def test_a_running_task_learns_that_it_is_cancelled_and_stops(
    make_queue: Callable[..., TaskQueue], crew: Any
) -> None:
    queue = make_queue(lease=0.3)
    running = Event()

    @queue.task
    def polite() -> None:
        context = current_context()
        assert context is not None
        running.set()
        wait_until(lambda: context.cancelled, 20, "a cancellation")
        context.check()

    handle = polite.submit()
    crew.start(queue)
    assert running.wait(10)
    assert handle.cancel() == "asked"

    with pytest.raises(TaskCancelled):
        handle.result(timeout=20)
    assert handle.state().state is State.CANCELLED


def test_a_running_task_that_does_not_care_is_done_in_spite_of_it(
    make_queue: Callable[..., TaskQueue], crew: Any
) -> None:
    queue = make_queue(lease=0.3)
    release = Event()

    @queue.task
    def stubborn(context: ExecutionContext) -> str:
        wait_until(lambda: context.cancelled, 20, "a cancellation")
        release.wait(20)
        return "done all the same"

    handle = stubborn.submit()
    crew.start(queue)
    wait_until(lambda: handle.state().state is State.RUNNING, 10, "it to run")
    handle.cancel()
    release.set()

    assert handle.result(timeout=20) == "done all the same"


def test_a_running_task_that_fails_after_it_was_cancelled_is_not_tried_again(
    make_queue: Callable[..., TaskQueue], crew: Any
) -> None:
    queue = make_queue(lease=0.3)
    attempts: list[int] = []

    @queue.task(retries=5)
    def fail(context: ExecutionContext) -> None:
        attempts.append(context.attempt)
        wait_until(lambda: context.cancelled, 20, "a cancellation")
        raise ValueError

    handle = fail.submit()
    crew.start(queue)
    wait_until(lambda: attempts, 10, "it to run")
    handle.cancel()

    with pytest.raises(TaskCancelled):
        handle.result(timeout=20)
    assert attempts == [1]


def test_tasks_that_a_worker_holds_but_has_not_begun_are_cancelled(
    queue: TaskQueue, crew: Any
) -> None:
    release, runs = Event(), []

    @queue.task
    def note(number: int) -> None:
        if number == 100:
            release.wait(20)
        runs.append(number)

    handles = note.submit_many([(n,) for n in range(200)])
    crew.start(queue)
    # By then the worker takes many at once.
    wait_until(lambda: handles[100].state().state is State.RUNNING, 10, "the 101st")
    cancelled = [handle for handle in handles[101:] if handle.cancel() != "ended"]
    client: Any = internals_of(queue).driver.client
    wait_until(
        lambda: client.keys(internals_of(queue).keys.deque("*")),
        10,
        "it to put them down",
    )
    release.set()
    queue.wait(timeout=20)

    assert len(cancelled) == 99
    assert runs == list(range(101))
    assert {h.state().state for h in cancelled} == {State.CANCELLED}


def test_a_task_that_fails_before_it_learns_of_its_cancellation_is_not_tried_again(
    queue: TaskQueue, crew: Any
) -> None:
    release, attempts = Event(), []

    @queue.task(retries=RetryPolicy(retries=5, initial_delay=0.01, max_delay=0.01))
    def fail(context: ExecutionContext) -> None:
        attempts.append(context.attempt)
        release.wait(20)
        raise ValueError

    handle = fail.submit()
    crew.start(queue)
    wait_until(lambda: attempts, 10, "it to run")
    assert handle.cancel() == "asked"
    release.set()

    with pytest.raises(TaskCancelled):
        handle.result(timeout=20)
    assert attempts == [1]


def test_a_cancelled_task_does_not_come_back_when_its_worker_dies(
    make_queue: Callable[..., TaskQueue],
) -> None:
    """Pain 5: cancelled tasks come back after a restart."""
    queue = make_queue(lease=0.05)
    runs: list[int] = []

    @queue.task
    def note() -> None:
        runs.append(1)

    handle = note.submit()
    abilities = {"abilities": list(queue.registry.abilities())}
    call = internals_of(queue).driver.call
    call(
        worker_calls.join(
            internals_of(queue).keys,
            internals_of(queue).settings,
            "dead.0",
            "i",
            abilities,
        )
    )
    call(
        exchange(
            internals_of(queue).keys,
            internals_of(queue).settings,
            "dead.0",
            "i",
            want=1,
            keep=4,
        )
    )
    assert handle.cancel() == "asked"
    drain(queue)

    assert runs == []
    with pytest.raises(TaskCancelled):
        handle.result(timeout=5)
