"""Several workers, threads, forks and kinds of client on one queue."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, get_ident
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workstealing import TaskQueue, Worker
from workstealing.client.queue_internals import internals_of
from workstealing.errors import ConfigurationError
from workstealing.tasks.context import ExecutionContext, current_context
from workstealing.testing import Server, wait_until


def drain(queue: TaskQueue) -> None:
    Worker(queue).run(until_empty=True)


def test_a_task_gets_its_context_and_whatever_it_calls_does_too(
    queue: TaskQueue,
) -> None:
    def below() -> ExecutionContext | None:
        return current_context()

    @queue.task(name="about", version=7)
    def about(context: ExecutionContext) -> list[Any]:
        assert below() is context
        return [
            context.id,
            context.name,
            context.version,
            context.attempt,
            context.worker,
            context.queue,
        ]

    handle = about.submit()
    Worker(queue, pool="pool", index=3).run(until_empty=True)

    assert handle.result(timeout=5) == [handle.id, "about", 7, 1, "pool.3", queue.name]
    assert current_context() is None


def test_coroutines_and_functions_run_in_one_plain_worker(queue: TaskQueue) -> None:
    loops: set[int] = set()

    @queue.task
    async def asynchronous(number: int) -> int:
        import asyncio

        loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        assert current_context() is not None
        return number

    @queue.task
    def plain(number: int) -> int:
        return -number

    handles = [task.submit(n) for n in (1, 2) for task in (asynchronous, plain)]
    drain(queue)

    assert [handle.result(timeout=5) for handle in handles] == [1, -1, 2, -2]
    assert len(loops) == 1


def test_several_workers_share_the_work_and_do_each_task_once(
    queue: TaskQueue, crew: Any
) -> None:
    runs: Counter[int] = Counter()
    all_there = Event()

    @queue.task
    def note(number: int) -> str:
        all_there.wait(20)
        runs[number] += 1
        context = current_context()
        assert context is not None
        return context.worker

    workers = [crew.start(queue, pool="crew", index=n) for n in range(4)]
    handles = note.submit_many([(n,) for n in range(400)])
    wait_until(lambda: len(queue.counts().leases) == 4, 10, "all to join")
    all_there.set()
    queue.wait(timeout=30)

    assert set(runs.values()) == {1}
    assert len(runs) == 400
    assert {h.result(timeout=5) for h in handles} <= {w.name for w in workers}
    assert sum(worker.stats.taken for worker in workers) >= 400


def test_an_idle_worker_steals_what_another_has_not_begun(
    queue: TaskQueue, crew: Any
) -> None:
    release, held = Event(), Event()

    @queue.task
    def hold() -> str:
        held.set()
        release.wait(30)
        return "held"

    @queue.task
    def quick(number: int) -> int:
        return number

    # While nobody else is there the rich one fills its hands; then it is held up.
    drain(queue)
    long = hold.submit()
    quick.submit_many([(n,) for n in range(8)])
    rich = crew.start(queue, pool="rich")
    assert held.wait(10)
    client: Any = internals_of(queue).driver.client
    for _ in range(4):
        moved = client.lpop(internals_of(queue).keys.inboxes[1])
        client.rpush(internals_of(queue).keys.deque(rich.name), moved)
        client.hset(internals_of(queue).keys.lock, moved, f"{rich.name}#1")
    client.zadd(internals_of(queue).keys.loads, {rich.name: 4})
    thief = crew.start(queue, pool="thief")
    wait_until(lambda: queue.counts().tasks == 1, 20, "all but the held to be done")

    assert thief.stats.stolen == 4
    counts = queue.counts()
    assert counts.stats["stolen"] == 4
    assert counts.stats["stolen:thief.0"] == 4
    release.set()
    assert long.result(timeout=10) == "held"


def test_what_a_worker_took_but_has_not_begun_is_within_reach_of_others(
    queue: TaskQueue, crew: Any
) -> None:
    """Pain 18: one worker sits on tasks while others are idle."""
    release = Event()

    @queue.task
    def note(number: int) -> str:
        context = current_context()
        assert context is not None
        if number == 150:
            release.wait(30)
        return context.worker

    handles = note.submit_many([(n,) for n in range(300)])
    crew.start(queue, pool="rich")
    # By then it takes many at once, and one of them takes long.
    wait_until(lambda: handles[150].state().worker == "rich.0", 10, "the long one")
    crew.start(queue, pool="thief")
    wait_until(lambda: queue.counts().tasks == 1, 20, "all but the long one")

    assert handles[299].result(timeout=5) == "thief.0"
    release.set()
    assert handles[150].result(timeout=10) == "rich.0"


def test_a_worker_that_stops_hands_back_what_it_has_not_begun(
    queue: TaskQueue, crew: Any
) -> None:
    started, release = Event(), Event()

    @queue.task
    def note(number: int) -> int:
        if number == 50:
            started.set()
            release.wait(20)
        return number

    handles = note.submit_many([(n,) for n in range(200)])
    worker = crew.start(queue, pool="first")
    assert started.wait(10)
    worker.stop()
    release.set()
    wait_until(lambda: not queue.counts().leases, 10, "it to leave")
    assert handles[50].result(timeout=5) == 50
    assert queue.counts().assigned == 0
    assert 0 < queue.counts().tasks < 200
    drain(queue)

    assert [handle.result(timeout=5) for handle in handles] == list(range(200))
    assert queue.counts().stats["done"] == 200


def test_a_worker_can_be_stopped_before_it_has_begun(queue: TaskQueue) -> None:
    worker = Worker(queue)
    worker.stop()

    worker.run()

    assert queue.counts().leases == {}


def test_a_worker_that_is_interrupted_hands_back_what_it_holds(
    queue: TaskQueue,
) -> None:
    interrupts = [KeyboardInterrupt]

    @queue.task
    def note(number: int) -> int:
        if number == 50 and interrupts:
            raise interrupts.pop()
        return number

    handles = note.submit_many([(n,) for n in range(200)])
    with pytest.raises(KeyboardInterrupt):
        drain(queue)
    counts = queue.counts()
    assert counts.assigned == 0
    assert counts.leases == {}
    assert counts.stats["done"] == 50
    drain(queue)

    assert [handle.result(timeout=5) for handle in handles] == list(range(200))


def test_a_worker_can_run_again(queue: TaskQueue) -> None:
    @queue.task
    def one() -> int:
        return 1

    worker = Worker(queue)
    for _ in range(2):
        handle = one.submit()
        worker.run(until_empty=True)
        assert handle.result(timeout=5) == 1


@pytest.mark.parametrize("batch", [0, 1001, "many"])
def test_a_batch_that_makes_no_sense_is_refused(queue: TaskQueue, batch: Any) -> None:
    with pytest.raises(ConfigurationError, match="batch"):
        Worker(queue, batch=batch)


@pytest.mark.parametrize("batch", [1, 1000])
def test_a_worker_takes_no_more_at_once_than_it_is_told(
    queue: TaskQueue, batch: int
) -> None:
    most: list[int] = [0]

    @queue.task
    def note(number: int) -> None:
        if number % 100 == 99:
            client: Any = internals_of(queue).driver.client
            context = current_context()
            assert context is not None
            held = client.hlen(internals_of(queue).keys.running(context.worker))
            most[0] = max(most[0], held)

    note.submit_many([(n,) for n in range(4_000)])
    Worker(queue, batch=batch).run(until_empty=True)

    assert most[0] <= batch
    assert queue.counts().stats["done"] == 4_000


def test_several_threads_use_one_queue(queue: TaskQueue, crew: Any) -> None:
    @queue.task
    def double(number: int) -> int:
        return 2 * number

    crew.start(queue)
    threads: set[int] = set()

    def ask(number: int) -> int:
        threads.add(get_ident())
        return double.submit(number).result(timeout=20)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(40))) == [2 * n for n in range(40)]
    assert len(threads) > 1


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_queue_goes_on_after_a_fork_on_both_sides(
    queue: TaskQueue, crew: Any
) -> None:
    @queue.task
    def double(number: int) -> int:
        return 2 * number

    crew.start(queue)
    assert double.submit(1).result(timeout=20) == 2

    def child() -> None:
        answers = [double.submit(n).result(timeout=20) for n in range(5)]
        os._exit(0 if answers == [0, 2, 4, 6, 8] else 1)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    answers = [double.submit(n).result(timeout=20) for n in range(20)]
    process.join(20)

    assert process.exitcode == 0
    assert answers == [2 * n for n in range(20)]


@pytest.mark.parametrize(
    "options",
    [
        {"decode_responses": True},
        {"protocol": 3, "decode_responses": True},
        {"encoding": "latin-1", "decode_responses": True},
        {"socket_timeout": 0.5},
        {"retry": Retry(NoBackoff(), 3), "retry_on_error": [ConnectionError]},
    ],
    ids=["text", "resp3-text", "latin-1", "impatient", "repeats"],
)
def test_any_client_that_a_user_brings_will_do(
    make_queue: Callable[..., TaskQueue],
    redis_server: Server,
    crew: Any,
    options: dict[str, Any],
) -> None:
    with Redis.from_url(redis_server.url, **options) as client:
        queue = make_queue(client)

        @queue.task
        def greet(name: str) -> str:
            return f"hellö {name}"

        worker = crew.start(queue)
        # Some rests on the bell go by before there is anything to do.
        wait_until(lambda: worker.stats.exchanges >= 2, 10, "the worker to be idle")
        handles = greet.submit_many([("Ann",), ("Bjørn",)])
        later = greet.submit_in(0.01, "Cleo")

        assert [h.result(timeout=10) for h in (*handles, later)] == [
            "hellö Ann",
            "hellö Bjørn",
            "hellö Cleo",
        ]
        assert handles[0].cancel() == "ended"
        assert worker.stats.failures == 0
        crew.stop()
