"""Pausing a queue or a task name, as users do it and see it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from workstealing import (
    AsyncTaskQueue,
    Inspector,
    Limit,
    Recruiter,
    State,
    TaskQueue,
    Worker,
    WorkStealer,
)
from workstealing.errors import ConfigurationError, ResultTimeout
from workstealing.testing import Server, wait_until

Make = Callable[..., TaskQueue]


def echo(word: str) -> str:
    return word


def shout(word: str) -> str:
    return word.upper()


def test_a_paused_queue_begins_nothing_until_it_is_resumed(make_queue: Make) -> None:
    queue = make_queue()
    task = queue.task(name="echo")(echo).submit("a")

    assert queue.pause()
    assert not queue.pause(), "it was paused already"
    Worker(queue).run(until_empty=True)
    assert task.state().state is State.PAUSED
    assert str(task.state()).endswith(": the queue is paused")
    assert queue.paused().queue_since_ms is not None

    assert queue.resume()
    assert not queue.resume()
    Worker(queue).run(until_empty=True)
    assert task.result(timeout=5) == "a"


def test_tasks_of_other_names_run_past_a_paused_one(make_queue: Make) -> None:
    queue = make_queue()
    first = queue.task(name="echo")(echo)
    other = queue.task(name="shout")(shout)
    held = first.submit("a")
    queue.pause(first)

    free = other.submit("b")
    Worker(queue).run(until_empty=True)

    assert free.result(timeout=5) == "B"
    assert str(held.state()).endswith(": task echo is paused")
    assert list(queue.paused().tasks) == ["echo"]
    queue.resume("echo")
    Worker(queue).run(until_empty=True)
    assert held.result(timeout=5) == "a"


def test_a_worker_at_rest_takes_up_what_is_resumed(make_queue: Make, crew: Any) -> None:
    queue = make_queue()
    task = queue.task(name="echo")(echo)
    crew.start(queue)
    queue.pause("echo")
    handles = task.submit_many([(str(n),) for n in range(50)])
    wait_until(lambda: queue.counts().paused == 50, 10, "it to put them aside")

    queue.resume("echo")

    assert [one.result(timeout=5) for one in handles] == [str(n) for n in range(50)]


def test_who_waits_is_told_that_it_is_paused(make_queue: Make) -> None:
    queue = make_queue()
    task = queue.task(name="echo")(echo)
    handle = task.submit("a")
    queue.pause("echo")

    with pytest.raises(ResultTimeout, match=r"paused since .*: task echo is paused"):
        handle.result(timeout=0.05)
    with pytest.raises(ResultTimeout, match=r"1 task .*; task echo is paused since"):
        queue.wait(timeout=0.05)


def test_a_worker_says_once_that_something_is_paused_and_that_it_is_not(
    make_queue: Make, crew: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "workstealing.workers.exchanges")
    queue = make_queue()
    queue.pause()
    crew.start(queue)

    def told(text: str) -> int:
        return sum(text in record.getMessage() for record in caplog.records)

    wait_until(lambda: told("the queue is paused since"), 10, "it to say so")
    queue.resume()
    wait_until(lambda: told("nothing is paused any more"), 10, "it to say so")
    assert told("the queue is paused since") == 1


def test_every_view_says_what_is_paused(make_queue: Make) -> None:
    queue = make_queue()
    task = queue.task(name="echo")(echo)
    task.options(id="one").submit("a")
    queue.pause("echo")
    inspector = Inspector(queue)
    assert [row.state for row in inspector.ls("inbox")] == [State.PAUSED]
    Worker(queue).run(until_empty=True)

    stat = inspector.stat()
    assert (stat.paused, stat.waiting, stat.backlog) == (1, 0, 0)
    assert [(one.task, one.tasks) for one in stat.pauses] == [("echo", 1)]
    (row,) = inspector.ls("paused")
    assert (row.id, row.state, row.note) == ("one", State.PAUSED, "task echo is paused")
    assert "not begun: task echo has been paused since" in str(inspector.why("one"))
    tree = repr(inspector.tree())
    assert "1 put aside" in tree
    assert "task echo is paused since" in tree


def test_the_command_that_lets_a_task_run_names_its_queue(make_queue: Make) -> None:
    queue = make_queue(run="second")
    held = queue.task(name="echo", limit=Limit(concurrency=1))(echo).submit("a")
    queue.pause("echo")

    told = Inspector(queue).why(held.id).sentences

    assert "It waits in its line." in told
    named = f"--queue {queue.name} --run second --task echo"
    assert f"`workstealing queue resume {named}` lets it run." in told


def test_a_cancelled_one_does_not_come_back(make_queue: Make) -> None:
    queue = make_queue()
    task = queue.task(name="echo")(echo)
    handle = task.submit("a")
    queue.pause("echo")
    Worker(queue).run(until_empty=True)

    assert handle.cancel() == "cancelled"
    queue.resume("echo")

    assert queue.wait(timeout=5).unfinished == 0
    assert handle.state().state is State.CANCELLED


def test_recruits_keep_a_pause_and_finish_a_resume(make_queue: Make) -> None:
    queue = make_queue()
    task = queue.task(name="echo")(echo)
    recruiter = Recruiter(share=None)
    recruiter.install(WorkStealer(queue), "tasks", rate=1.0)
    handle = task.submit_in(0.001, "a")
    queue.pause()
    wait_until(
        lambda: recruiter.enlist() and handle.state().state is State.PAUSED, 10, "it"
    )
    assert queue.paused()


@pytest.mark.parametrize("name", ["", "a b", "echo@1", 7, "*"])
def test_a_name_that_no_task_can_have_is_refused(make_queue: Make, name: Any) -> None:
    queue = make_queue()

    with pytest.raises(ConfigurationError):
        queue.pause(name)
    with pytest.raises(ConfigurationError):
        queue.resume(name)
    assert not queue.paused()


async def test_asyncio_pauses_alike(redis_server: Server, key_prefix: str) -> None:
    async with AsyncTaskQueue(key_prefix, redis_server.url) as queue:
        task = queue.task(name="echo")(echo)

        assert await queue.pause(task)
        assert list((await queue.paused()).tasks) == ["echo"]
        assert await queue.resume("echo")
        assert not await queue.paused()
