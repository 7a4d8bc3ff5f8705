"""The upkeep of a queue is side work: whoever has a moment does it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from workstealing import (
    AsyncTaskQueue,
    AsyncWorkStealer,
    Duty,
    Recruiter,
    TaskQueue,
    Worker,
    WorkStealer,
    connect,
)
from workstealing._logs import flush_logs
from workstealing.client.queue_internals import internals_of
from workstealing.drivers.address import target_of
from workstealing.errors import RedisUnavailable
from workstealing.queue import worker_calls
from workstealing.queue.worker_calls import exchange
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until


def short_lived(queue: TaskQueue, name: str, want: int) -> None:
    """Be a worker that takes some tasks and is never heard of again."""
    abilities = {"abilities": list(queue.registry.abilities())}
    call = internals_of(queue).driver.call
    call(
        worker_calls.join(
            internals_of(queue).keys, internals_of(queue).settings, name, "i", abilities
        )
    )
    call(
        exchange(
            internals_of(queue).keys,
            internals_of(queue).settings,
            name,
            "i",
            want=want,
            keep=4,
        )
    )


def test_a_web_process_gives_back_the_tasks_of_a_dead_worker(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue, web = make_queue(lease=0.05), make_queue()

    @queue.task
    def one() -> int:
        return 1

    handles = one.submit_many([()] * 5)
    short_lived(queue, "dead.0", 3)
    assert handles[0].state().state is State.RUNNING
    recruiter = Recruiter(share=None)
    recruiter.install(WorkStealer(web), "tasks", rate=1.0)

    def is_free() -> bool:
        recruiter.enlist()
        return {handle.state().state for handle in handles} == {State.WAITING}

    wait_until(is_free, 10, "the tasks to be free again")
    counts = queue.counts()
    assert counts.leases == {}
    assert counts.stats["reassigned"] == 3
    assert counts.stats["upkeep:recruit"] >= 1
    Worker(queue).run(until_empty=True)
    assert [handle.result(timeout=5) for handle in handles] == [1] * 5


def test_the_upkeep_of_a_queue_with_nothing_to_do_is_dismissed(
    queue: TaskQueue,
) -> None:
    job = WorkStealer(queue)
    job.recruited()

    assert job.recruited() is Duty.DISMISSED
    assert internals_of(queue).target == job.target


def test_upkeep_promotes_what_is_due_and_says_by_whom(queue: TaskQueue) -> None:
    @queue.task
    def one() -> int:
        return 1

    handle = one.submit_in(0.01)
    job = WorkStealer(queue, by="nightly")

    def is_promoted() -> bool:
        job.recruited()
        return handle.state().state is State.WAITING

    wait_until(is_promoted, 10, "it to be due")
    counts = queue.counts()
    assert counts.stats["upkeep:nightly"] >= 1
    assert "promote" in counts.upkeep


async def test_the_asyncio_face_does_the_same(
    async_redis_client: AsyncRedis,
    key_prefix: str,
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(lease=0.01)
    async_queue = AsyncTaskQueue(key_prefix, async_redis_client)

    @queue.task
    def one() -> int:
        return 1

    handle = one.submit()
    short_lived(queue, "dead.0", 1)
    job = AsyncWorkStealer(async_queue)
    for _ in range(200):
        await job.recruited()
        if handle.state().state is State.WAITING:
            break

    assert handle.state().state is State.WAITING
    assert job.target == internals_of(async_queue).target


def test_a_task_whose_workers_keep_dying_is_given_up_and_says_so(
    make_queue: Callable[..., TaskQueue], caplog: pytest.LogCaptureFixture
) -> None:
    queue = make_queue(lease=0.02)

    @queue.task(name="deadly")
    def deadly() -> None: ...

    handle, job = deadly.submit(), WorkStealer(queue)
    for death in range(3):
        assert handle.state().state is State.WAITING
        short_lived(queue, f"dead.{death}", 1)
        wait_until(lambda: job.recruited() is Duty.RECRUITED, 10, "its lease to end")

    state = handle.state()
    assert state.state is State.DEAD
    assert "died 3 times" in state.reason
    assert flush_logs()
    assert caplog.text.count(f"it may have been running {handle.id}") == 2
    (error,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert error.name == "workstealing.workers.upkeep"
    said = error.getMessage()
    assert f"task {handle.id} (deadly) was given up (its worker died 3 times" in said
    assert "`workstealing queue replay`" in said
    assert queue.replay(handle.id)


def test_a_worker_uses_its_idle_moments_for_side_work(
    queue: TaskQueue, crew: Any
) -> None:
    recruited = Event()
    recruiter = Recruiter(share=None)
    recruiter.install(recruited.set, "side-work", rate=1.0)
    crew.start(queue, recruiter=recruiter)

    assert recruited.wait(10)


def named(url: str, name: str) -> str:
    """Have a server list the connections of a URL by a name."""
    return f"{url}{'&' if '?' in url else '?'}client_name={name}"


def connections(client: Redis, name: str) -> int:
    return sum(one["name"] == name for one in client.client_list())


def test_closed_upkeep_leaves_no_connection_behind(
    redis_client: Redis, redis_server: Server, key_prefix: str
) -> None:
    job = WorkStealer(TaskQueue("q", named(redis_server.url, key_prefix)))

    for _ in range(2):
        assert job.target
        job.recruited()
        assert connections(redis_client, key_prefix) == 1
        job.close()
        wait_until(
            lambda: not connections(redis_client, key_prefix), 10, "it to hang up"
        )


async def test_closed_asyncio_upkeep_leaves_no_connection_behind(
    redis_client: Redis, redis_server: Server, key_prefix: str
) -> None:
    job = AsyncWorkStealer(AsyncTaskQueue("q", named(redis_server.url, key_prefix)))

    for _ in range(2):
        assert job.target
        await job.recruited()
        assert connections(redis_client, key_prefix) == 1
        await job.close()
        wait_until(
            lambda: not connections(redis_client, key_prefix), 10, "it to hang up"
        )


def test_upkeep_leaves_a_client_that_the_queue_was_given_open(
    redis_client: Redis, key_prefix: str
) -> None:
    job = WorkStealer(TaskQueue(key_prefix, redis_client))
    job.recruited()
    before = redis_client.client_id()

    job.close()

    assert redis_client.client_id() == before


def test_the_name_of_the_server_costs_the_queue_no_client(redis_server: Server) -> None:
    queue = TaskQueue("q", redis_server.url)

    with closing(WorkStealer(queue)) as job:
        assert job.target == target_of(connect(redis_server.url))

    assert internals_of(queue).source._driver is None  # type: ignore[attr-defined]


@pytest.fixture
def hanging_url() -> Iterator[str]:
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.timeout(30)  # as patient as a worker, it would take a hundred seconds
def test_promise_1_a_host_waits_for_a_dead_redis_no_longer_than_other_side_work(
    hanging_url: str,
) -> None:
    job = WorkStealer(TaskQueue("q", hanging_url))

    for _ in range(20):
        with pytest.raises(RedisUnavailable):
            job.recruited()
