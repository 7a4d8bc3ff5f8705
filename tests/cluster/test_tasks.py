"""The main stories about tasks, on a Cluster of three."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest

from workstealing import AsyncTaskQueue, Duty, TaskQueue, Worker, WorkStealer
from workstealing.client import queue_outcomes
from workstealing.client.queue_internals import internals_of
from workstealing.errors import (
    ConfigurationError,
    TaskCancelled,
    TaskFailed,
    TaskNotFound,
)
from workstealing.queue import worker_calls
from workstealing.queue.worker_calls import exchange
from workstealing.tasks.outcome import State
from workstealing.tasks.retry import RetryPolicy
from workstealing.testing import ClusterOfThree, wait_until


class Crew:
    """Workers in threads, stopped at the end of the test."""

    def __init__(self) -> None:
        self._at_work: list[tuple[Worker, Thread]] = []

    def start(self, queue: TaskQueue, **options: Any) -> Worker:
        worker = Worker(queue, **options)
        thread = Thread(target=worker.run)
        self._at_work.append((worker, thread))
        thread.start()
        return worker

    def stop(self) -> None:
        for worker, _ in self._at_work:
            worker.stop()
        for _, thread in self._at_work:
            thread.join(timeout=20)
            assert not thread.is_alive()


@pytest.fixture
def crew() -> Iterator[Crew]:
    crew = Crew()
    yield crew
    crew.stop()


@pytest.fixture
def make_queue(
    redis_cluster: ClusterOfThree, key_prefix: str
) -> Iterator[Callable[..., TaskQueue]]:
    made: list[TaskQueue] = []

    def make(**options: Any) -> TaskQueue:
        made.append(TaskQueue(key_prefix, redis_cluster.url, **options))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


@pytest.fixture
def queue(make_queue: Callable[..., TaskQueue]) -> TaskQueue:
    return make_queue()


@pytest.fixture
async def async_queue(
    redis_cluster: ClusterOfThree, key_prefix: str
) -> AsyncIterator[AsyncTaskQueue]:
    queue = AsyncTaskQueue(key_prefix, redis_cluster.url)
    yield queue
    await queue.close()


def drain(queue: TaskQueue) -> None:
    Worker(queue).run(until_empty="all")


def test_tasks_are_run_and_tell_their_results(queue: TaskQueue) -> None:
    @queue.task
    def double(number: int) -> int:
        return 2 * number

    handles = double.submit_many([(n,) for n in range(1_200)])
    urgent = double.options(priority=0, id="urgent").submit(7)
    later = double.submit_in(0.05, 8)
    assert urgent.state().state is State.WAITING
    assert later.state().state is State.DELAYED
    drain(queue)

    assert [handle.result(timeout=5) for handle in handles[::100]] == [
        2 * n for n in range(0, 1_200, 100)
    ]
    assert [urgent.result(timeout=5), later.result(timeout=5)] == [14, 16]
    assert queue.counts().outcomes == 1_202


def test_several_queues_live_on_several_nodes(
    redis_cluster: ClusterOfThree, key_prefix: str
) -> None:
    queues = [TaskQueue(key_prefix, redis_cluster.url, run=str(n)) for n in range(4)]
    for queue in queues:

        @queue.task(name="one")
        def one() -> int:
            return 1

        handle = one.submit()
        drain(queue)
        assert handle.result(timeout=5) == 1

    client: Any = internals_of(queues[0]).driver.client
    nodes = {
        client.get_node_from_key(internals_of(queue).keys.task).name for queue in queues
    }
    assert len(nodes) > 1
    for queue in queues:
        queue.close()


def test_an_outcome_is_pushed_to_whoever_waits(
    queue: TaskQueue, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever only looked would come too late.
    monkeypatch.setattr(queue_outcomes, "_LOOK_SECONDS", 3600.0)
    release, answers = Event(), []

    @queue.task
    def wait() -> str:
        release.wait(20)
        return "done"

    handle = wait.submit()
    caller = Thread(target=lambda: answers.append(handle.result(timeout=20)))
    caller.start()
    client: Any = internals_of(queue).driver.client
    wait_until(lambda: client.hlen(internals_of(queue).keys.awaited), 10, "one to wait")
    crew.start(queue)
    release.set()
    caller.join(20)

    assert answers == ["done"]


async def test_the_asyncio_face_tells_the_same(
    async_queue: AsyncTaskQueue, queue: TaskQueue, crew: Crew
) -> None:
    def double(number: int) -> int:
        return 2 * number

    queue.task(double)
    task = async_queue.task(double)
    handles = [await task.submit(n) for n in range(5)]
    waits = [asyncio.create_task(handle.result(timeout=20)) for handle in handles]
    crew.start(queue)

    assert await asyncio.gather(*waits) == [0, 2, 4, 6, 8]
    assert (await handles[0].state()).state is State.DONE
    with pytest.raises(TaskNotFound):
        await async_queue.handle("nobody").result(timeout=5)


def test_failed_cancelled_retried_and_parked_tasks_are_told_apart(
    queue: TaskQueue, make_queue: Callable[..., TaskQueue]
) -> None:
    attempts: list[int] = []

    @queue.task(retries=RetryPolicy(retries=2, initial_delay=0.01, max_delay=0.01))
    def fail() -> None:
        attempts.append(1)
        raise ValueError("no")

    other = make_queue()

    @other.task(name="elsewhere")
    def elsewhere() -> str:
        return "here"

    failed, cancelled, parked = fail.submit(), fail.submit(), elsewhere.submit()
    assert cancelled.cancel() == "cancelled"
    drain(queue)

    with pytest.raises(TaskFailed, match="ValueError"):
        failed.result(timeout=5)
    with pytest.raises(TaskCancelled):
        cancelled.result(timeout=5)
    assert len(attempts) == 3
    assert parked.state().state is State.PARKED
    assert queue.replay(failed.id)
    assert queue.drop("nobody") is False
    drain(other)
    assert parked.result(timeout=5) == "here"


def test_workers_share_and_steal_and_do_each_task_once(
    queue: TaskQueue, crew: Crew
) -> None:
    runs: Counter[int] = Counter()
    release = Event()

    @queue.task
    def note(number: int) -> None:
        if number == 150:
            release.wait(30)
        runs[number] += 1

    handles = note.submit_many([(n,) for n in range(300)])
    crew.start(queue, pool="rich")
    wait_until(lambda: handles[150].state().worker == "rich.0", 10, "the long one")
    crew.start(queue, pool="thief")
    wait_until(lambda: queue.counts().tasks == 1, 20, "all but the long one")
    release.set()
    queue.wait(timeout=10)

    assert set(runs.values()) == {1}
    assert len(runs) == 300


def test_the_tasks_of_a_dead_worker_are_given_back(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(lease=0.05)

    @queue.task
    def one() -> int:
        return 1

    handles = one.submit_many([()] * 5)
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
            want=3,
            keep=4,
        )
    )
    job = WorkStealer(queue)
    wait_until(lambda: job.recruited() is Duty.RECRUITED, 10, "its lease to end")
    drain(queue)

    assert [handle.result(timeout=5) for handle in handles] == [1] * 5
    assert queue.counts().stats["reassigned"] == 3


def test_schedules_are_declared_fired_and_listed(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(release=1)

    @queue.every(3600, name="hourly", missed="all")
    def hourly() -> str:
        return "done"

    stealer = WorkStealer(queue)
    stealer.recruited()
    internals = internals_of(queue)
    client: Any = internals.driver.client
    (state,) = queue.schedules()
    assert state.next is not None
    due = int(state.next.timestamp() * 1000) - 3 * 3_600_000
    client.zadd(internals.keys.ticks, {"hourly": due})
    stealer.recruited()
    stealer.close()
    Worker(queue).run(until_empty=True)

    (state,) = queue.schedules()
    assert state.fired == 3
    assert queue.handle(state.last_id).result(timeout=5) == "done"


def test_that_replicas_are_to_have_a_task_is_refused_before_it_is_submitted(
    make_queue: Callable[..., TaskQueue],
) -> None:
    queue = make_queue(replicas=1)

    with pytest.raises(ConfigurationError, match="min-replicas-to-write"):
        queue.task(name="add")(lambda: None).submit()

    assert queue.counts().unfinished == 0
