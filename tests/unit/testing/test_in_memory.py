"""Queues of a program, with URLs of their own, are taken into memory and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import (
    AsyncBriefTasks,
    AsyncTask,
    AsyncTaskQueue,
    AsyncWorkStealer,
    BriefTasks,
    ExecutionContext,
    TaskQueue,
    Worker,
    WorkerPool,
    WorkStealer,
)
from workstealing.errors import ConfigurationError, RedisUnavailable
from workstealing.testing import Memory, MemoryQueue, in_memory

# Nobody answers there: a test that asks it fails.
NOWHERE = "redis://127.0.0.1:1/0"

InMemory = Callable[..., Memory]

# Globals, as processes need them.
orders = TaskQueue("orders", NOWHERE)
pictures = AsyncTaskQueue("pictures", NOWHERE)


class App:
    """A module of a user, as it is after its import."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.mail = mail = TaskQueue("mail", NOWHERE)
        self.media = media = AsyncTaskQueue("media", NOWHERE)

        @mail.task(name="send", retries=2)
        def send(to: str) -> str:
            self.sent.append(to)
            return f"sent to {to}"

        @media.task(name="complain")
        async def complain(task_id: str, reason: str) -> None:
            self.sent.append(reason)

        @media.task(name="resize", on_give_up=complain)
        async def resize(path: str) -> int:
            if path == "broken":
                raise ValueError("broken picture")
            send.submit(path)
            return len(path)

        self.send, self.resize, self.complain = send, resize, complain


@pytest.fixture
def app() -> App:
    return App()


def test_a_queue_with_a_url_runs_in_memory(app: App, in_memory: InMemory) -> None:
    memory = in_memory(app.mail)

    handle = app.send.submit("ann")
    memory.assert_submitted(app.send, to="ann")
    memory.drain()

    assert handle.result(1) == "sent to ann"
    assert app.sent == ["ann"]


def test_a_handle_that_was_made_before_works_inside(
    app: App, in_memory: InMemory
) -> None:
    handle = app.mail.handle("known")
    memory = in_memory(app.mail)

    app.send.options(id="known").submit("bob")
    memory.drain()

    assert handle.result(1) == "sent to bob"


def test_afterwards_a_queue_is_where_it_was(app: App) -> None:
    with in_memory(app.mail) as memory:
        handle = app.send.submit("ann")
        now = memory.now

    with pytest.raises(RedisUnavailable):
        app.send.submit("ann")
    with pytest.raises(RedisUnavailable):
        handle.state()
    assert now is not None


def test_two_tests_share_nothing(app: App) -> None:
    with in_memory(app.mail) as first:
        app.send.submit("ann")
        first.advance(3600)
    with in_memory(app.mail) as second:
        assert second.submitted == []
        assert second.drain() == []
        assert second.now < first.now
        assert app.mail.counts().unfinished == 0


def test_a_queue_is_brought_back_after_an_error(app: App) -> None:
    before = app.mail._internals.source

    with pytest.raises(LookupError), in_memory(app.mail):
        raise LookupError

    assert app.mail._internals.source is before


async def test_an_asyncio_queue_runs_in_memory(app: App, in_memory: InMemory) -> None:
    memory = in_memory(app.media, app.mail)

    handle = await app.resize.submit("cat.png")
    ran = await memory.drain_async()

    assert await handle.result(1) == 7
    assert [(one.queue, one.task) for one in ran] == [
        ("media", "resize"),
        ("mail", "send"),
    ]


async def test_an_asyncio_queue_is_used_in_the_loop_of_each_test(
    app: App, in_memory: InMemory
) -> None:
    memory = in_memory(app.media)

    await app.resize.submit_in(60, "cat.png")
    memory.advance(59)
    assert await memory.drain_async() == []
    assert (await app.media.counts()).unfinished == 1


async def test_what_a_definition_has_made_of_an_asyncio_queue_comes_along(
    app: App, in_memory: InMemory
) -> None:
    memory = in_memory(app.media)

    await app.resize.submit("broken")
    await memory.drain_async()

    memory.assert_submitted(app.complain)
    assert "broken picture" in app.sent[0]


async def test_a_worker_of_an_asyncio_queue_that_was_made_before_comes_along(
    app: App, in_memory: InMemory
) -> None:
    worker = Worker(app.media)
    in_memory(app.media, app.mail)

    handle = await app.resize.submit("a.png")
    await asyncio.to_thread(worker.run, until_empty=True)

    assert await handle.result(1) == 5


async def test_retries_and_delays_take_no_time(app: App, in_memory: InMemory) -> None:
    memory = in_memory(app.media)

    await app.resize.options(retries=5).submit("broken")
    ran = await memory.drain_async(until="all")

    assert [one.outcome for one in ran][:6] == ["retry"] * 5 + ["failed"]


def test_a_queue_that_was_given_a_client_runs_in_memory(in_memory: InMemory) -> None:
    queue = TaskQueue("given", Redis(port=1))
    awaited = AsyncTaskQueue("awaited", AsyncRedis(port=1))

    @queue.task(name="note")
    def note() -> None: ...

    @awaited.task(name="wait")
    async def wait() -> None:
        note.submit()

    memory = in_memory(queue, awaited)
    asyncio.run(_submit(wait))

    assert [one.task for one in memory.drain()] == ["wait", "note"]


async def _submit(task: AsyncTask[[], None]) -> None:
    await task.submit()


def test_tasks_of_two_queues_call_each_other(in_memory: InMemory) -> None:
    first, second = TaskQueue("first", NOWHERE), TaskQueue("second", NOWHERE)
    seen: list[int] = []

    @first.task
    def down(number: int) -> None:
        seen.append(number)
        if number:
            further_down.submit(number - 1)

    @second.task
    def further_down(number: int) -> None:
        seen.append(number)
        if number:
            down.submit(number - 1)

    memory = in_memory(first, second)
    down.submit(4)
    memory.drain()

    assert seen == [4, 3, 2, 1, 0]


def test_side_work_that_was_installed_before_comes_along(
    app: App, in_memory: InMemory
) -> None:
    stealer = WorkStealer(app.mail)
    memory = in_memory(app.mail)

    handle = app.send.submit_in(5, "ann")
    memory.advance(5)
    stealer.recruited()

    assert handle.state().state == "waiting"


async def test_side_work_of_an_asyncio_queue_comes_along(
    app: App, in_memory: InMemory
) -> None:
    stealer = AsyncWorkStealer(app.media)
    memory = in_memory(app.media)

    handle = await app.resize.submit_in(5, "a.png")
    memory.advance(5)
    await stealer.recruited()
    await stealer.close()

    assert (await handle.state()).state == "waiting"


def test_brief_tasks_that_were_installed_before_come_along(app: App) -> None:
    spare = BriefTasks(app.mail)

    @app.mail.task(name="note", brief=True)
    def note(context: ExecutionContext, text: str) -> str:
        context.progress(1, 1)
        return text

    for _ in range(2):
        with in_memory(app.mail):
            handle = note.submit("hello")
            spare.recruited()
            assert handle.result(1) == "hello"
    spare.close()


async def test_brief_tasks_of_an_asyncio_queue_come_along(
    app: App, in_memory: InMemory
) -> None:
    spare = AsyncBriefTasks(app.media)

    @app.media.task(name="note", brief=True)
    async def note(context: ExecutionContext, text: str) -> str:
        context.progress(1, 1)
        return text

    in_memory(app.media)
    handle = await note.submit("hello")
    await spare.recruited()
    assert await handle.result(1) == "hello"
    await spare.close()


def test_a_schedule_of_a_module_fires(in_memory: InMemory) -> None:
    queue = TaskQueue("nights", NOWHERE)

    @queue.every(3600)
    @queue.task(name="hourly")
    def hourly() -> None: ...

    memory = in_memory(queue)
    memory.advance(3600)

    assert [one.task for one in memory.drain()] == ["hourly"]
    memory.assert_submitted(hourly)


@pytest.fixture
def outer(app: App) -> Iterator[Memory]:
    with in_memory(app.mail) as memory:
        yield memory


def test_a_queue_may_be_taken_again_inside(app: App, outer: Memory) -> None:
    app.send.submit("outer")
    with in_memory(app.mail) as inner:
        app.send.submit("inner")
        inner.drain()
    outer.drain()

    assert app.sent == ["inner", "outer"]


@pytest.mark.parametrize("queue", [orders, pictures], ids=["orders", "pictures"])
def test_processes_are_refused_since_they_would_work_elsewhere(
    queue: TaskQueue | AsyncTaskQueue, in_memory: InMemory
) -> None:
    in_memory(queue)

    with pytest.raises(ConfigurationError, match=r"in memory.*kind='threads'"):
        WorkerPool(queue, 1, "processes").start()


def test_processes_of_a_queue_that_was_never_elsewhere_are_refused(
    memory_queue: MemoryQueue,
) -> None:
    with pytest.raises(ConfigurationError, match=r"in memory.*kind='threads'"):
        WorkerPool(memory_queue, 1, "processes").start()


def test_what_is_no_queue_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="was given none"), in_memory():
        pass
    with (
        pytest.raises(ConfigurationError, match="not str"),
        in_memory("mail"),  # type: ignore[arg-type]
    ):
        pass
