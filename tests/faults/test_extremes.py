"""More connections than a server allows, a million tasks, and payloads of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from threading import Thread
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import RedisError

from workstealing import (
    Inspector,
    Recruiter,
    TaskQueue,
    Worker,
    WorkerPool,
    WorkStealer,
)
from workstealing.client.queue_internals import internals_of
from workstealing.client.task import Task
from workstealing.errors import PayloadTooLarge, RedisUnavailable
from workstealing.inspecting.task_search import TaskFilter
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until

_RARE = 5_000
_ALLOWED, _CLIENTS = 50, 200

# As many tasks as if a producer had submitted them, without its minutes.
_COPY = """
local envelope = redis.call('HGET', KEYS[1], ARGV[1])
for first = tonumber(ARGV[2]), tonumber(ARGV[3]), 1000 do
  local ids, tasks = {}, {}
  for n = first, math.min(first + 999, tonumber(ARGV[3])) do
    ids[#ids + 1] = ARGV[1] .. '-' .. n
    tasks[#tasks + 1] = ARGV[1] .. '-' .. n
    tasks[#tasks + 1] = envelope
  end
  redis.call('HSET', KEYS[1], unpack(tasks))
  redis.call('RPUSH', KEYS[2], unpack(ids))
end
"""


@pytest.fixture
def small_server() -> Iterator[Server]:
    with Server(tcp=True, maxclients=_ALLOWED) as server:
        yield server


def test_of_200_clients_where_50_are_allowed_the_refused_can_try_again(
    small_server: Server, key_prefix: str
) -> None:
    """A client that is refused hears so, and never that its task was taken."""
    waiting = [Client(key_prefix, small_server.url) for _ in range(_CLIENTS)]
    accepted: list[str] = []
    rounds = 0
    while waiting:
        rounds += 1
        # Who was let in keeps its connection until all others have tried.
        let_in = [client for client in waiting if client.submits(accepted)]
        waiting = [client for client in waiting if client not in let_in]
        for client in let_in:
            client.queue.close()

    assert rounds >= _CLIENTS // _ALLOWED
    with TaskQueue(key_prefix, small_server.url) as queue:
        queue.task(name="double")(double)
        Worker(queue).run(until_empty=True)
        results = [queue.handle(name).result(timeout=5) for name in accepted]
        assert results == [2 * number for number in range(_CLIENTS)]
        assert queue.counts().stats["done"] == _CLIENTS


def test_who_is_refused_a_connection_at_work_or_waiting_goes_on_when_there_is_room(
    small_server: Server, key_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker, a pool and one who waits, all of which come when the server is full."""
    with ExitStack() as stack:

        def new_queue() -> TaskQueue:
            return stack.enter_context(TaskQueue(key_prefix, small_server.url))

        producer, awaited = new_queue(), new_queue()
        task = producer.task(name="double")(double)
        name = task.submit(21).id
        at_work = new_queue(), new_queue()
        for queue in at_work:
            queue.task(name="double")(double)
        worker = Worker(at_work[0])
        pool = WorkerPool(at_work[1], 2, "threads")
        thread = Thread(target=worker.run)
        threads = stack.enter_context(ThreadPoolExecutor(1))

        with crowd(small_server):
            thread.start()
            pool.start()
            waiting = threads.submit(awaited.handle(name).result, 90)
            wait_until(lambda: worker.stats.failures > 1, 30, "the worker to fail")
            wait_until(lambda: pool.stats().failures > 1, 30, "the pool to fail")
            wait_until(lambda: "still waiting" in caplog.text, 30, "the wait to fail")
            assert not waiting.done()

        assert waiting.result(60) == 42
        # Each of them takes tasks, though the other could do them all.
        wait_until(
            lambda: (
                task.submit(1) and worker.stats.taken > 0 and pool.stats().taken > 0
            ),
            60,
            "both to be at work",
        )
        worker.stop()
        thread.join(20)
        assert pool.stop() == 0


@contextmanager
def crowd(server: Server) -> Iterator[None]:
    """Take all connections that the server still has to give."""
    with ExitStack() as stack:
        with suppress(RedisError):
            for _ in range(2 * _ALLOWED):
                client = Redis.from_url(server.url, single_connection_client=True)
                stack.callback(client.close)
                client.ping()
            pytest.fail("the server refuses nobody")
        yield


class Client:
    """A process that submits and enlists, with a connection of its own."""

    def __init__(self, name: str, url: str) -> None:
        self.queue = TaskQueue(name, url)
        self._task = self.queue.task(name="double")(double)
        self._recruiter = Recruiter(share=None)
        self._recruiter.install(WorkStealer(self.queue), "tasks", rate=1.0)

    def submits(self, accepted: list[str]) -> bool:
        """Submit the next number; return whether it was taken."""
        self._recruiter.enlist()
        try:
            handle = self._task.submit(len(accepted))
        except RedisUnavailable:
            return False
        accepted.append(handle.id)
        return True


def double(number: int) -> int:
    return 2 * number


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "number", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)]
)
def test_many_waiting_tasks_are_listed_and_cancelled_and_as_many_more_drained(
    key_prefix: str, number: int
) -> None:
    with Server() as server, TaskQueue(key_prefix, server.url) as queue:
        task = queue.task(name="double")(double)
        rare = queue.task(name="rare")(double)
        half = (number - _RARE) // 2
        first = fill(server, queue, task, half)
        rare.submit_many([(n,) for n in range(_RARE)])
        fill(server, queue, task, half)
        inspector = Inspector(queue)

        assert queue.counts().unfinished == number
        assert len(inspector.ls("inbox", 20)) == 20
        assert len(inspector.search(TaskFilter(state="waiting")).rows) == 50
        middle = queue.handle(f"{first}-{half // 2}")
        assert middle.state().state is State.WAITING
        assert middle.cancel() == "cancelled"
        # All are looked at, each time.
        chosen = queue.cancel_many(task="rare", state="waiting")
        assert (chosen.matched, chosen.changed) == (_RARE, _RARE)
        left = number - _RARE - 1
        assert queue.counts().unfinished == left
        all_others = queue.cancel_many()
        assert (all_others.matched, all_others.changed) == (left, left)
        assert queue.counts().unfinished == 0

        # They stand behind the ids of those that were cancelled.
        fill(server, queue, task, number)
        Worker(queue).run(until_empty=True)

        counts = queue.counts()
        assert (counts.stats["cancelled"], counts.stats["done"]) == (number, number)
        assert (counts.unfinished, counts.inbox) == (0, (0, 0, 0))
        with Redis.from_url(server.url) as client:
            assert not client.exists(internals_of(queue).keys.cancelled)


def fill(server: Server, queue: TaskQueue, task: Task[Any, Any], number: int) -> str:
    """Submit one, and copy it until there are so many; return what their ids have."""
    keys, like = internals_of(queue).keys, task.submit(1).id
    with Redis.from_url(server.url) as client:
        for begin in range(1, number, 50_000):
            end = min(begin + 50_000, number) - 1
            client.eval(_COPY, 2, keys.task, keys.inboxes[1], like, begin, end)
    return like


@pytest.fixture
def length(redis_server: Server, key_prefix: str) -> Iterator[Callable[..., Any]]:
    with TaskQueue(key_prefix, redis_server.url) as queue:

        @queue.task
        def length(text: str = "") -> int:
            return len(text)

        def run(*arguments: str) -> int:
            handle = length.submit(*arguments)
            Worker(queue).run(until_empty=True)
            return int(handle.result(timeout=10))

        yield run


def test_a_payload_may_have_nothing_in_it_and_as_many_bytes_as_the_limit(
    length: Callable[..., int],
) -> None:
    most = QueueSettings().max_payload - len('{"text":""}')

    assert length() == 0
    assert length("") == 0
    assert length("x" * most) == most
    with pytest.raises(PayloadTooLarge, match="1,048,577 bytes"):
        length("x" * (most + 1))
