"""Where is my task? Every answer, told apart."""

from __future__ import annotations

from threading import Event
from typing import Any

from workstealing import TaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.tasks.outcome import State
from workstealing.tasks.retry import Retry
from workstealing.testing import wait_until


def test_a_task_goes_from_waiting_to_assigned_to_running_to_done(
    queue: TaskQueue, crew: Any
) -> None:
    release = Event()

    @queue.task
    def wait() -> str:
        release.wait(20)
        return "done"

    handles = wait.submit_many([()] * 8)
    assert {handle.state().state for handle in handles} == {State.WAITING}

    # The second worker makes the first keep some in its deque.
    crew.start(queue, pool="a")
    crew.start(queue, pool="b")

    def states() -> set[State]:
        return {handle.state().state for handle in handles}

    wait_until(lambda: {State.ASSIGNED, State.RUNNING} <= states(), 10, "both")
    seen = [handle.state() for handle in handles]
    for state in seen:
        if state.state in (State.ASSIGNED, State.RUNNING):
            assert state.worker in ("a.0", "b.0")
        if state.state is State.RUNNING:
            assert state.since_ms is not None
            assert f"running on {state.worker} since" in str(state)
        if state.state is State.ASSIGNED:
            assert str(state) == f"assigned to {state.worker}"
    release.set()

    assert [handle.result(timeout=10) for handle in handles] == ["done"] * 8
    ended = handles[0].state()
    assert ended.state is State.DONE
    assert ended.worker in ("a.0", "b.0")


def test_a_task_that_is_to_be_tried_again_is_delayed_and_counts_its_attempts(
    queue: TaskQueue, crew: Any
) -> None:
    @queue.task(retries=5)
    def not_yet() -> None:
        raise Retry(after=3600)

    handle = not_yet.submit()
    assert handle.state().attempt == 1
    crew.start(queue)
    wait_until(lambda: handle.state().state is State.DELAYED, 10, "a retry")

    assert handle.state().attempt == 2
    assert "delayed until" in str(handle.state())


def test_a_task_that_was_asked_to_stop_says_so_while_it_runs(
    queue: TaskQueue, crew: Any
) -> None:
    release = Event()

    @queue.task
    def wait() -> None:
        release.wait(20)

    handle = wait.submit()
    crew.start(queue)
    wait_until(lambda: handle.state().state is State.RUNNING, 10, "it to run")

    assert handle.cancel() == "asked"
    assert handle.state().reason == "asked to stop"
    release.set()


def test_other_ends_of_a_task_are_told_apart(queue: TaskQueue, crew: Any) -> None:
    @queue.task
    def fail() -> None:
        raise ValueError("no")

    failed = fail.submit()
    cancelled = fail.submit_in(3600)
    assert cancelled.state().state is State.DELAYED
    cancelled.cancel()
    client: Any = internals_of(queue).driver.client
    for task_id, envelope in {
        "broken": b"{",
        "foreign": b'{"v":1,"name":"nobody","version":3,"payload":{}}',
    }.items():
        client.hset(internals_of(queue).keys.task, task_id, envelope)
        client.rpush(internals_of(queue).keys.inboxes[1], task_id)
    crew.start(queue)
    queue.wait(timeout=20)

    assert failed.state().state is State.FAILED
    assert failed.state().reason == "ValueError: no"
    assert cancelled.state().state is State.CANCELLED
    assert queue.handle("broken").state().state is State.DEAD
    assert "not an envelope" in queue.handle("broken").state().reason
    parked = queue.handle("foreign").state()
    assert parked.state is State.PARKED
    assert parked.reason == "no worker can run nobody@3"
