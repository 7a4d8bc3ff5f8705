"""What a task tells while it runs: logs, how far it is, where to go on."""

# ruff: noqa: T201 - what is printed is what this is about

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from threading import enumerate as enumerate_threads
from typing import Any

import pytest

from workstealing import AsyncTaskQueue, TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.client.task_log import (
    LoggingChannel,
)
from workstealing.errors import ConfigurationError, TaskFailed
from workstealing.inspecting import Inspector
from workstealing.tasks.context import ExecutionContext
from workstealing.tasks.outcome import State
from workstealing.testing import MemoryQueue, Server, wait_until


def test_a_log_is_kept_only_if_it_was_asked_for(
    queue: TaskQueue, capsys: pytest.CaptureFixture[str]
) -> None:
    @queue.task(name="chat")
    def chat(word: str) -> None:
        print(word)

    silent, told = chat.submit("silent"), chat.options(log=True).submit("told")
    Worker(queue).run(until_empty="all")

    assert silent.logs() == []
    assert [record.message for record in told.logs()] == ["told"]
    assert capsys.readouterr().out == "silent\n"
    assert queue.handle(told.id).logs() == told.logs()


def test_a_caller_receives_records_while_the_task_runs(
    queue: TaskQueue, crew: Any
) -> None:
    going_on: list[bool] = []

    @queue.task(name="chat")
    def chat(ctx: ExecutionContext) -> None:
        ctx.logger.info("begun")
        wait_until(lambda: going_on, 10, "the word to go on")
        print("ended")

    crew.start(queue)
    channel = LoggingChannel.memory()
    handle = chat.options(log=True).submit()
    with handle.following(channel):
        wait_until(lambda: len(channel.records) == 1, 10, "the first record")
        going_on.append(True)
        handle.result(timeout=10)

    assert [record.message for record in channel.records] == ["begun", "ended"]


def test_following_ends_with_the_task(queue: TaskQueue, crew: Any) -> None:
    @queue.task(name="chat")
    def chat(lines: int) -> None:
        for number in range(lines):
            print(number)

    crew.start(queue)
    channel = LoggingChannel.memory()
    handle = chat.options(log=True).submit(1500)

    handle.follow(channel)

    numbers = [int(record.message) for record in channel.records]
    assert numbers == list(range(1500))


def test_who_stops_following_has_what_was_told_by_then(
    queue: TaskQueue, crew: Any
) -> None:
    going_on: list[bool] = []

    @queue.task(name="chat")
    def chat(ctx: ExecutionContext) -> None:
        print("first")
        ctx.progress(1)
        wait_until(lambda: going_on, 10, "the word to go on")

    crew.start(queue)
    channel = LoggingChannel.memory()
    handle = chat.options(log=True).submit()
    with handle.following(channel):
        wait_until(lambda: handle.state().progress, 10, "the first line")

    assert [record.message for record in channel.records] == ["first"]
    names = {thread.name for thread in enumerate_threads()}
    assert f"workstealing-log-{handle.id}" not in names
    going_on.append(True)


def test_a_channel_that_fails_spoils_nothing(
    queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.task(name="chat")
    def chat() -> int:
        print("x")
        return 7

    handle = chat.options(log=True).submit()
    Worker(queue).run(until_empty="all")
    handle.follow(LoggingChannel(lambda record: 1 / 0))

    assert handle.result(timeout=5) == 7
    assert "a logging channel failed" in caplog.text


def test_what_is_no_record_is_passed_over(
    queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.task(name="chat")
    def chat() -> None:
        print("x")

    handle = chat.options(log=True).submit()
    Worker(queue).run(until_empty="all")
    fields = {"n": "1", "b": "9", "r": b"\xff no record"}
    internals_of(queue).driver.client.xadd(
        internals_of(queue).keys.log(handle.id), fields
    )

    assert [record.message for record in handle.logs()] == ["x"]
    assert "cannot be read" in caplog.text


def test_a_console_shows_what_is_printed_where_it_belongs(
    queue: TaskQueue, capsys: pytest.CaptureFixture[str]
) -> None:
    @queue.task(name="chat")
    def chat(ctx: ExecutionContext) -> None:
        print("out")
        ctx.stderr.write("err\n")
        ctx.logger.warning("careful")

    handle = chat.options(log=True).submit()
    Worker(queue).run(until_empty="all")
    handle.follow(LoggingChannel.console())

    shown = capsys.readouterr()
    assert shown.out == "out\n"
    assert "err\n" in shown.err
    assert "WARNING workstealing.task.chat: careful" in shown.err


async def test_logs_are_read_and_followed_under_asyncio(
    async_queue: AsyncTaskQueue, make_queue: Callable[..., TaskQueue], crew: Any
) -> None:
    @async_queue.task(name="chat")
    async def chat(word: str) -> str:
        print(word)
        return word

    crew.start(make_queue(registry=async_queue.registry))
    channel = LoggingChannel.memory()
    handle = await chat.options(log=True).submit("hello")
    async with handle.following(channel):
        assert await handle.result(timeout=10) == "hello"

    assert [record.message for record in channel.records] == ["hello"]
    assert await handle.logs() == channel.records
    await handle.follow(channel)
    assert len(channel.records) == 2


def test_a_task_whose_redis_is_away_goes_on_without_a_log(key_prefix: str) -> None:
    with Server(appendonly="yes", appendfsync="always") as server:
        queue = TaskQueue(key_prefix, server.url)

        @queue.task(name="chat")
        def chat(ctx: ExecutionContext) -> bool:
            print("before")
            server.kill()
            print("lost")
            ctx.progress(1, 2)
            is_saved = ctx.save(1)
            server.restart()
            print("after")
            return is_saved

        handle = chat.options(log=True).submit()
        Worker(queue).run(until_empty="all")

        assert handle.result(timeout=10) is False
        records = [(record.message, record.dropped) for record in handle.logs()]
        assert records[0] == ("before", 0)
        assert records[-1][0] == "after"
        # The line, and what we warned of for progress and checkpoint; a server that is
        # back soon has the last warning itself.
        assert sum(dropped for _, dropped in records) + len(records) - 2 == 3
        assert "lost" not in [message for message, _ in records]
        queue.close()


def test_progress_is_seen_while_the_task_runs(queue: TaskQueue, crew: Any) -> None:
    going_on: list[bool] = []

    @queue.task(name="walk")
    def walk(ctx: ExecutionContext) -> None:
        ctx.progress(3, 10, "to the shop")
        wait_until(lambda: going_on, 10, "the word to go on")

    crew.start(queue)
    handle = walk.submit()
    state = wait_until(
        lambda: (seen := handle.state()).progress and seen, 10, "some progress"
    )

    assert (state.progress.done, state.progress.total) == (3, 10)
    assert "(3 of 10, to the shop)" in str(state)
    why = str(Inspector(queue).why(handle.id))
    assert "It reports being at 3 of 10, to the shop." in why
    going_on.append(True)
    handle.result(timeout=10)
    assert handle.state().progress is None


@pytest.mark.parametrize(
    ("done", "shown"),
    [
        (Decimal("2.5"), "(2.5 of 5000000)"),
        (Fraction(1, 2), "(0.5 of 5000000)"),
        (1_250_000, "(1250000 of 5000000)"),
        (math.nan, "since"),
        (math.inf, "since"),
    ],
)
def test_progress_in_any_number_leaves_the_state_readable(
    memory_queue: MemoryQueue, done: Any, shown: str
) -> None:
    states: list[str] = []

    @memory_queue.task
    def walk(ctx: ExecutionContext) -> None:
        ctx.progress(done, 5_000_000)
        states.append(str(memory_queue.handle(ctx.id).state()))

    walk.submit()
    memory_queue.drain(raises=True)

    assert shown in states[0]
    assert ("(" in states[0]) == math.isfinite(done)


def test_frequent_progress_costs_little_and_the_last_is_always_shown(
    queue: TaskQueue, crew: Any
) -> None:
    going_on: list[bool] = []

    @queue.task(name="walk")
    def walk(ctx: ExecutionContext) -> None:
        for number in range(1001):
            ctx.progress(number, 1000)
        wait_until(lambda: going_on, 10, "the word to go on")

    crew.start(queue)
    handle = walk.submit()

    wait_until(
        lambda: "(1000 of 1000)" in str(handle.state()), 10, "the last of the progress"
    )
    going_on.append(True)


def test_the_next_attempt_goes_on_from_the_checkpoint(queue: TaskQueue) -> None:
    seen: list[Any] = []

    @queue.task(name="climb", retries=3, retry_on=(ValueError,))
    def climb(ctx: ExecutionContext) -> int:
        height = ctx.checkpoint or {"height": 0}
        seen.append(height["height"])
        assert ctx.save({"height": height["height"] + 10})
        if len(seen) < 3:
            raise ValueError("tired")
        return seen[-1]

    handle = climb.submit()
    Worker(queue).run(until_empty="all")

    assert handle.result(timeout=5) == 20
    assert seen == [0, 10, 20]


def test_notes_end_with_their_task(queue: TaskQueue) -> None:
    @queue.task(name="climb")
    def climb(ctx: ExecutionContext) -> Any:
        before = ctx.checkpoint
        ctx.save(1)
        return before

    climb.options(id="once").submit()
    Worker(queue).run(until_empty="all")
    client = internals_of(queue).driver.client

    assert 0 < client.pttl(internals_of(queue).keys.notes("once")) <= 60_000
    # And a task that gets the same id later does not find them.
    again = climb.options(id="once", again=True).submit()
    Worker(queue).run(until_empty="all")
    assert again.result(timeout=5) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [("x" * 300_000, "the limit is 262,144"), (object(), "must have a form in JSON")],
)
def test_a_checkpoint_that_cannot_be_kept_is_an_error(
    queue: TaskQueue, value: Any, words: str
) -> None:
    @queue.task(name="climb")
    def climb(ctx: ExecutionContext) -> None:
        ctx.save(value)

    handle = climb.submit()
    Worker(queue).run(until_empty="all")

    with pytest.raises(TaskFailed, match=words) as failed:
        handle.result(timeout=5)
    assert ConfigurationError.__name__ in failed.value.error


def test_outside_of_a_worker_notes_go_nowhere() -> None:
    context = ExecutionContext("id", "task")

    context.progress(1, 2)

    assert context.save(1) is False
    assert context.checkpoint is None


def test_a_failed_task_leaves_its_log(queue: TaskQueue) -> None:
    @queue.task(name="chat")
    def chat() -> None:
        print("so far")
        raise ValueError

    handle = chat.options(log=True).submit()
    Worker(queue).run(until_empty="all")

    assert handle.state().state is State.FAILED
    assert [record.message for record in handle.logs()] == ["so far"]
