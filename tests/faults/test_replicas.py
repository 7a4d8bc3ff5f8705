"""`replicas=1`: what counts is what a replica has."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workstealing import (
    AsyncTaskQueue,
    BriefTasks,
    Recruiter,
    TaskQueue,
    Worker,
    WorkerPool,
)
from workstealing.client.queue_internals import internals_of
from workstealing.errors import NotReplicated
from workstealing.testing import Server, wait_until

_SECONDS = 20


class Pair:
    """A primary behind an address of its own, and its replica."""

    def __init__(self, primary: Server, replica: Server, proxy: Any) -> None:
        self._proxy = proxy
        self._ports = primary.port, replica.port
        self.primary = Redis.from_url(primary.url, socket_timeout=5)
        self.replica = Redis.from_url(replica.url, socket_timeout=5)
        self.url: str = proxy.url
        self.follow()

    def follow(self) -> None:
        self.replica.replicaof("127.0.0.1", self._ports[0])
        wait_until(self._is_following, _SECONDS, "the replica to follow")

    def part(self) -> None:
        """Let the replica follow no more, with what it has."""
        self.replica.replicaof("NO", "ONE")

    def fail_over(self) -> None:
        self._proxy.lead_to(self._ports[1])
        self.replica.replicaof("NO", "ONE")
        self.primary.replicaof("127.0.0.1", self._ports[1])

    def _is_following(self) -> bool:
        facts: Any = self.primary.info("replication")
        return facts["connected_slaves"] == 1 and facts["slave0"]["state"] == "online"


@pytest.fixture
def pair(make_proxy: Callable[..., Any]) -> Iterator[Pair]:
    options = {"repl_diskless_sync_delay": 0}
    with Server(tcp=True, **options) as primary, Server(tcp=True, **options) as replica:
        made = Pair(primary, replica, make_proxy(primary))
        yield made
        made.primary.close()
        made.replica.close()


def add(a: int, b: int) -> int:
    return a + b


def test_a_task_that_was_taken_is_at_the_replica(pair: Pair, key_prefix: str) -> None:
    with TaskQueue(key_prefix, pair.url, replicas=1) as queue:
        task, keys = queue.task(name="add")(add), internals_of(queue).keys
        for _ in range(20):
            handle = task.submit(1, 2)
            assert pair.replica.hexists(keys.task, handle.id)

        pair.primary.config_resetstat()
        task.submit_many([(n, n) for n in range(2500)])

        assert pair.replica.hlen(keys.task) == 2520
        commands: Any = pair.primary.info("commandstats")
        assert commands["cmdstat_wait"]["calls"] == 3, "a thousand wait together"


def test_tasks_of_all_shards_are_at_the_replica_before_they_count(
    pair: Pair, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, pair.url, replicas=1, shards=4) as queue:
        task, shards = queue.task(name="add")(add), internals_of(queue).shards.all
        handles = task.submit_many([(n, n) for n in range(400)])
        assert [pair.replica.hlen(keys.task) for keys in shards] == [100] * 4
        Worker(queue).run(until_empty=True)
        assert handles[-1].result(10) == 798

        pair.part()
        with pytest.raises(NotReplicated) as caught:
            task.submit_many([(n, n) for n in range(400)])
        assert len(caught.value.ids) == 400


def test_a_task_that_no_replica_has_is_refused_and_may_be_submitted_again(
    pair: Pair, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, pair.url, replicas=1) as queue:
        task, keys = queue.task(name="add")(add), internals_of(queue).keys
        task.submit(1, 2)
        pair.part()

        with pytest.raises(NotReplicated, match="0 of the 1 replicas") as caught:
            task.options(id="once").submit(3, 4)
        assert caught.value.ids == ("once",)

        pair.follow()
        task.options(id="once").submit(3, 4)
        assert pair.replica.hexists(keys.task, "once")
        assert queue.counts().unfinished == 2


def test_a_task_that_is_known_is_not_confirmed_before_a_replica_has_it(
    pair: Pair, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, pair.url, replicas=1) as queue:
        task = queue.task(name="add")(add)
        pid = pair.replica.info("server")["process_id"]
        task.submit(1, 2)
        with stopped(pid):
            for _ in range(2):
                with pytest.raises(NotReplicated):
                    task.options(id="once").submit(3, 4)

        task.options(id="once").submit(3, 4)


def test_of_many_tasks_all_ids_are_named(pair: Pair, key_prefix: str) -> None:
    with TaskQueue(key_prefix, pair.url, replicas=1) as queue:
        task = queue.task(name="add")(add)
        pair.part()

        with pytest.raises(NotReplicated, match="1500 tasks") as caught:
            task.submit_many([(n, n) for n in range(1500)])

        assert len(caught.value.ids) == 1500


def test_a_client_that_repeats_commands_asks_on_the_same_connection(
    pair: Pair, key_prefix: str
) -> None:
    retry = Retry(NoBackoff(), 1)
    with Redis.from_url(pair.url, retry=retry, socket_timeout=5) as client:
        queue = TaskQueue(key_prefix, client, replicas=1)
        task = queue.task(name="add")(add)
        handle = task.submit(1, 2)
        Worker(queue).run(until_empty=True)
        assert pair.replica.hexists(internals_of(queue).keys.done, handle.id)
        pair.part()

        with pytest.raises(NotReplicated):
            task.submit(1, 2)


def test_an_asyncio_queue_asks_for_replicas_too(pair: Pair, key_prefix: str) -> None:
    async def scenario() -> None:
        async with AsyncTaskQueue(key_prefix, pair.url, replicas=1) as queue:
            task, keys = queue.task(name="add")(add), internals_of(queue).keys
            handle = await task.submit(1, 2)
            assert pair.replica.hexists(keys.task, handle.id)
            pair.part()
            with pytest.raises(NotReplicated):
                await task.submit(1, 2)

    asyncio.run(scenario())


def test_how_a_task_ended_is_at_the_replica_when_its_worker_goes_on(
    pair: Pair, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, pair.url, replicas=1) as queue:
        task, keys = queue.task(name="add")(add), internals_of(queue).keys
        handles = task.submit_many([(n, n) for n in range(50)])

        Worker(queue).run(until_empty=True)

        assert pair.replica.hlen(keys.done) == len(handles)


@pytest.mark.parametrize("kind", [None, "threads"])
def test_an_ending_that_no_replica_had_is_reported_to_the_next_primary(
    pair: Pair, key_prefix: str, kind: Any
) -> None:
    runs: list[str] = []
    with TaskQueue(key_prefix, pair.url, replicas=1) as queue:

        @queue.task
        def part(name: str) -> str:
            runs.append(name)
            if name == "first":
                pair.part()
            return name

        first = part.submit("first")
        worker = Worker(queue) if kind is None else WorkerPool(queue, 1, kind)
        with running(worker):
            keys = internals_of(queue).keys
            wait_until(lambda: pair.primary.hlen(keys.done) == 1, _SECONDS, "its end")
            assert pair.replica.hlen(keys.done) == 0
            pair.fail_over()
            wait_until(lambda: pair.replica.hlen(keys.done) == 1, _SECONDS, "its end")
            second = part.submit("second")
            assert second.result(_SECONDS) == "second"
            assert first.result(_SECONDS) == "first"

    assert runs == ["first", "second"]


def test_a_worker_takes_no_more_until_a_replica_has_what_it_reported(
    pair: Pair, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, pair.url, replicas=1, lease=3.0) as queue:
        task, keys = queue.task(name="add")(add), internals_of(queue).keys
        task.submit(1, 2)
        pair.part()
        pair.primary.set("unrelated", "1")
        worker = Worker(queue)
        with running(worker):
            wait_until(lambda: worker.stats.failures > 3, _SECONDS, "it to try again")
            with pytest.raises(NotReplicated) as caught:
                task.submit(3, 4)
            assert worker.stats.taken == 1
            assert worker.stats.lost_leases == 0
            pair.follow()
            wait_until(lambda: pair.replica.hlen(keys.done) == 2, _SECONDS, "both")
            assert queue.handle(*caught.value.ids).result(_SECONDS) == 7


@contextmanager
def running(worker: Worker | WorkerPool) -> Iterator[None]:
    if isinstance(worker, WorkerPool):
        worker.start()
        yield
        worker.stop(hot=True)
        return
    thread = Thread(target=worker.run, daemon=True)
    thread.start()
    yield
    worker.stop()
    thread.join(_SECONDS)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_spare_moment_takes_no_more_until_a_replica_has_what_it_reported(
    pair: Pair, key_prefix: str
) -> None:
    queue = TaskQueue(
        key_prefix, Redis.from_url(pair.url, socket_timeout=2), replicas=1
    )

    @queue.task(name="visit", brief=True)
    def visit(number: int) -> int:
        return number

    handles = [visit.submit(number) for number in range(40)]
    # Confirming takes long here: for a while, nothing would fit into slices of 50 ms.
    recruiter = Recruiter(share=None, breaker=None, deadline=3.0)
    spare = BriefTasks(queue)
    recruiter.install(spare, "brief", rate=1.0)
    pair.part()

    def has_taken() -> bool:
        recruiter.enlist()
        return "brief" in queue.counts().stats

    wait_until(has_taken, _SECONDS, "the first tasks")
    before = queue.counts()
    for _ in range(3):
        recruiter.enlist()
    assert queue.counts().stats["brief"] == before.stats["brief"]
    assert queue.counts().assigned == 0, "nothing waits for it"

    pair.follow()
    wait_until(
        lambda: recruiter.enlist() and not queue.counts().unfinished, 60, "the rest"
    )
    assert [each.result(timeout=5) for each in handles] == list(range(40))
    assert "reassigned" not in queue.counts().stats
    spare.close()


def test_a_refusal_to_say_how_many_replicas_there_are_is_named(
    pair: Pair, key_prefix: str
) -> None:
    pair.primary.execute_command(
        *("ACL", "SETUSER", "mute", "on", "nopass", "~*", "&*", "+@all", "-wait")
    )
    url = pair.url.replace("redis://", "redis://mute:x@")
    queue = TaskQueue(key_prefix, url, replicas=1)

    @queue.task(name="visit")
    def visit(number: int) -> int:
        return number

    with pytest.raises(NotReplicated, match=r"refused to say.*[Pp]ermission"):
        visit.submit(1)
    with pytest.raises(NotReplicated, match="refused to say"):
        visit.submit_many([(1,), (2,)])
    queue.close()
