"""A failover behind one address, as managed servers do it.

The name stays. The old primary becomes a read-only replica and keeps its connections,
so only those who connect anew find the new one.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from redis import BlockingConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workstealing import (
    AsyncTaskQueue,
    Recruiter,
    TaskQueue,
    Worker,
    WorkerPool,
    WorkStealer,
    connect,
    gather_results,
)
from workstealing.client.queue_internals import internals_of
from workstealing.errors import RedisReadOnly, ResultTimeout
from workstealing.tasks.context import ExecutionContext
from workstealing.telemetry.events import Outcome
from workstealing.testing import Server, wait_until

Make = Callable[..., Any]

# Less than the minute after which a worker reconnects because of silence.
_SECONDS = 20
_WAIT_MS = 4000


class FixedAddress:
    """Two servers behind one address, which leads to the primary."""

    def __init__(self, primary: Server, replica: Server, proxy: Any) -> None:
        self._proxy = proxy
        self.old = Redis.from_url(primary.url, socket_timeout=5)
        self.new = Redis.from_url(replica.url, socket_timeout=5)
        self._ports = primary.port, replica.port
        self.new_url = replica.url
        self.url: str = proxy.url
        self.new.replicaof("127.0.0.1", primary.port)
        wait_until(self._is_following, _SECONDS, "the replica to follow")

    def _is_following(self) -> bool:
        facts: Any = self.new.info("replication")
        return bool(facts.get("master_link_status") == "up")

    def demote(self) -> None:
        """Make the primary a replica, while the address still leads to it.

        It is a planned failover: the replica has everything by then.
        """
        if self.old.role()[0] == b"master":
            with self.old.client() as one:  # it waits for the last write of its own
                one.publish("any", "")
                assert one.wait(1, _WAIT_MS) == 1
        self.new.replicaof("NO", "ONE")
        self.old.replicaof("127.0.0.1", self._ports[1])

    def fail_over(self) -> None:
        """Exchange the roles, and have the address lead to the new primary."""
        self._proxy.lead_to(self._ports[1])
        self.demote()

    def close(self) -> None:
        self.old.close()
        self.new.close()


@pytest.fixture
def address(make_proxy: Make) -> Iterator[FixedAddress]:
    options = {"repl_diskless_sync_delay": 0}
    with Server(tcp=True, **options) as primary, Server(tcp=True, **options) as replica:
        made = FixedAddress(primary, replica, make_proxy(primary))
        yield made
        made.close()


def add(a: int, b: int) -> int:
    return a + b


def finish_all(address: FixedAddress, name: str) -> None:
    """Run all tasks by a worker that knows the new primary only."""
    queue = TaskQueue(name, address.new_url)
    queue.task(name="add")(add)
    Worker(queue).run(until_empty=True)
    queue.close()


def all_have_asked(
    address: FixedAddress, queue: TaskQueue | AsyncTaskQueue, number: int
) -> bool:
    """Return whether the old primary knows for how many tasks somebody waits.

    Those who ask the new one first stay subscribed to the old one, which passes on what
    is published as long as it is a replica.
    """
    return bool(address.old.hlen(internals_of(queue).keys.awaited) == number)


def test_a_producer_goes_on_at_the_new_primary(
    address: FixedAddress, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, address.url) as queue:
        task = queue.task(name="add")(add)
        task.submit(1, 2)
        address.fail_over()

        handle = task.submit(3, 4)

        assert address.new.hexists(internals_of(queue).keys.task, handle.id)


def test_all_idle_connections_of_a_producer_are_given_up(
    address: FixedAddress, key_prefix: str
) -> None:
    pool = BlockingConnectionPool.from_url(address.url, retry=Retry(NoBackoff(), 0))
    with Redis(connection_pool=pool) as client:
        queue = TaskQueue(key_prefix, client)
        task = queue.task(name="add")(add)
        held = [pool.get_connection() for _ in range(5)]
        for connection in held:
            pool.release(connection)
        task.submit(0, 0)
        address.fail_over()

        with ThreadPoolExecutor(5) as threads:
            asked = list(threads.map(lambda n: task.submit(n, n), range(20)))

        assert address.new.hlen(internals_of(queue).keys.task) == len(asked) + 1
    pool.disconnect()


def test_a_producer_is_refused_for_as_long_as_the_address_leads_to_a_replica(
    address: FixedAddress, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, address.url) as queue:
        task = queue.task(name="add")(add)
        task.submit(1, 2)
        address.demote()
        with pytest.raises(RedisReadOnly):
            task.submit(3, 4)
        with pytest.raises(RedisReadOnly):
            task.submit_many([(n, n) for n in range(2500)])
        address.fail_over()

        task.submit_many([(n, n) for n in range(2500)])

        assert queue.counts().unfinished == 2501


def test_one_who_waits_for_a_result_subscribes_at_the_new_primary(
    address: FixedAddress, key_prefix: str
) -> None:
    with (
        TaskQueue(key_prefix, address.url) as queue,
        ThreadPoolExecutor(3) as threads,
    ):
        task = queue.task(name="add")(add)
        waiting = [threads.submit(task.submit(n, 1).result, 25) for n in range(3)]
        wait_until(lambda: all_have_asked(address, queue, 3), _SECONDS, "all to wait")
        address.fail_over()

        wait_until(
            lambda: len(address.new.pubsub_channels()) == 3, _SECONDS, "all to move"
        )
        finish_all(address, key_prefix)

        assert [one.result(_SECONDS) for one in waiting] == [1, 2, 3]


def test_those_who_wait_wait_on_while_the_address_leads_to_a_replica(
    address: FixedAddress, key_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        TaskQueue(key_prefix, address.url) as queue,
        ThreadPoolExecutor(3) as threads,
    ):
        one, *several = queue.task(name="add")(add).submit_many([(1, 1)] * 3)
        address.demote()
        waits: list[Future[Any]] = [
            threads.submit(one.result, 60),
            threads.submit(gather_results, several, timeout=60),
            threads.submit(list, one.events(60)),
        ]
        wait_until(lambda: "still waiting" in caplog.text, _SECONDS, "a refusal")
        with pytest.raises(ResultTimeout, match=r"not available: .* read only"):
            one.result(0.3)
        address.fail_over()
        finish_all(address, key_prefix)

        result, gathered, events = [wait.result(_SECONDS) for wait in waits]

    assert (result, gathered) == (2, [2, 2])
    assert events[-1].state == "done"


def test_an_asyncio_queue_submits_and_waits_at_the_new_primary(
    address: FixedAddress, key_prefix: str
) -> None:
    async def scenario() -> list[int]:
        async with AsyncTaskQueue(key_prefix, address.url) as queue:
            task = queue.task(name="add")(add)
            handles = [await task.submit(n, 1) for n in range(3)]
            waiting = [asyncio.create_task(one.result(60)) for one in handles]
            await until(lambda: all_have_asked(address, queue, len(handles)))
            await asyncio.to_thread(address.fail_over)
            await until(lambda: len(address.new.pubsub_channels()) == 1)
            handles = [await task.submit(n, 10) for n in range(3)]
            waiting += [asyncio.create_task(one.result(60)) for one in handles]
            await asyncio.to_thread(finish_all, address, key_prefix)
            return await asyncio.wait_for(asyncio.gather(*waiting), _SECONDS)

    async def until(condition: Callable[[], bool]) -> None:
        await asyncio.to_thread(wait_until, condition, _SECONDS, "a subscription")

    assert asyncio.run(scenario()) == [1, 2, 3, 10, 11, 12]


_APP = """
    from workstealing import TaskQueue

    queue = TaskQueue({name!r}, {url!r}, lease=3.0)


    @queue.task(name="add")
    def add(a: int, b: int) -> int:
        return a + b
"""


@pytest.fixture
def app(
    address: FixedAddress,
    key_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Any]:
    """An application that children can import."""
    name = "app_" + key_prefix.replace("-", "_")
    code = _APP.format(name=key_prefix, url=address.url)
    (tmp_path / f"{name}.py").write_text(dedent(code))
    monkeypatch.syspath_prepend(tmp_path)
    yield (app := importlib.import_module(name))
    app.queue.close()
    del sys.modules[name]


@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_a_pool_works_for_the_new_primary(
    app: Any, address: FixedAddress, key_prefix: str, kind: Any
) -> None:
    pool = WorkerPool(app.queue, 2, kind)
    pool.start()
    try:
        assert app.add.submit(1, 2).result(timeout=30) == 3
        address.fail_over()
        with TaskQueue(key_prefix, address.new_url) as queue:
            handles = queue.task(name="add")(add).submit_many(
                [(n, n) for n in range(9)]
            )
            sums = [handle.result(timeout=_SECONDS) for handle in handles]
    finally:
        pool.stop(hot=True)

    assert sums == [2 * n for n in range(9)]


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_pool_that_was_struck_off_meanwhile_joins_at_the_new_primary(
    app: Any, address: FixedAddress, key_prefix: str, kind: Any
) -> None:
    pool = WorkerPool(app.queue, 1, kind, name="old")
    pool.start()
    try:
        assert app.add.submit(1, 2).result(timeout=30) == 3
        address.demote()
        with connect(address.new_url, profile="tasks") as client:
            queue = TaskQueue(key_prefix, client)

            def is_struck_off() -> bool:
                WorkStealer(queue).recruited()
                return not queue.counts().leases

            wait_until(is_struck_off, _SECONDS, "its lease to end")
            address.fail_over()
            total = queue.task(name="add")(add).submit(3, 4).result(_SECONDS)
    finally:
        pool.stop(hot=True)

    assert total == 7


def test_a_task_learns_that_a_server_which_answers_renews_its_lease_no_more(
    address: FixedAddress, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, address.url, lease=0.5) as queue:
        seen: list[bool] = []

        @queue.task
        def careful(context: ExecutionContext) -> None:
            seen.append(context.lease_lost)
            if len(seen) > 1:
                return
            address.demote()
            wait_until(lambda: context.lease_lost, _SECONDS, "it to be told")
            seen.append(context.lease_lost)
            address.fail_over()

        careful.submit()
        Worker(queue).run(until_empty=True)

    assert seen[:2] == [False, True]


def test_a_recruited_job_goes_on_at_the_new_primary(
    address: FixedAddress, key_prefix: str
) -> None:
    with connect(address.url, profile="tasks") as client:
        queue, recruiter = TaskQueue(key_prefix, client), Recruiter()
        recruiter.install(WorkStealer(queue), "upkeep", rate=1.0)
        recruiter.run_now("upkeep")
        address.fail_over()
        address.new.delete(internals_of(queue).keys.upkeep)
        wait_until(
            lambda: not address.old.exists(internals_of(queue).keys.upkeep),
            _SECONDS,
            "the old primary to follow",
        )

        recruiter.run_now("upkeep")

        assert recruiter.stats().jobs["upkeep"].outcomes[Outcome.ERROR] == 0
        assert address.new.exists(internals_of(queue).keys.upkeep)
