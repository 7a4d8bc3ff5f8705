"""Pools and workers that lost their server: they do not spin, and come back alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workstealing import TaskQueue, Worker
from workstealing.client.task import Task
from workstealing.testing import Server, wait_until
from workstealing.workers.worker_pool import WorkerPool

Make = Callable[..., Any]
each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio"])


class MovedClock:
    """The time of the machine, and what a test adds to it."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


class Scene:
    """A queue, a task, and a pool with a clock that can be moved."""

    def __init__(self, name: str, redis: Any, kind: Any, lease: float = 15.0) -> None:
        self.clock = MovedClock()
        self.queue = TaskQueue(name, redis, lease=lease)
        self.release = Event()
        self.task: Task[[int], int] = self.queue.task(name="wait")(self._wait)
        self.pool = WorkerPool(self.queue, 2, kind, clock=self.clock)
        self.pool.start()

    def _wait(self, number: int) -> int:
        self.release.wait(30)
        return number

    def ask(self, url: str, number: int) -> int:
        """Submit a task by a client that met no fault, and wait for it."""
        queue = TaskQueue(self.queue.name, url)
        try:
            return queue.task(name="wait")(self._wait).submit(number).result(20)
        finally:
            queue.close()

    def end(self) -> None:
        self.release.set()
        self.pool.stop(hot=True)
        self.queue.close()


@pytest.fixture
def stage(key_prefix: str) -> Iterator[Callable[..., Scene]]:
    scenes: list[Scene] = []

    def make(redis: Any, kind: Any, lease: float = 15.0) -> Scene:
        scenes.append(Scene(key_prefix, redis, kind, lease))
        return scenes[-1]

    yield make
    for scene in scenes:
        scene.end()


def patient_client(url: str) -> Redis:
    """A client as many write it: it waits for a reply for ever."""
    return Redis.from_url(
        url, socket_timeout=None, socket_connect_timeout=5, retry=Retry(NoBackoff(), 0)
    )


@each_kind
def test_without_a_server_a_pool_does_not_spin_and_comes_back_by_itself(
    tcp_server: Server,
    stage: Callable[..., Scene],
    kind: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = stage(tcp_server.url, kind)
    scene.release.set()
    assert scene.task.submit(1).result(timeout=10) == 1

    tcp_server.kill()
    went_at = time.monotonic()
    wait_until(lambda: scene.pool.stats().failures >= 4, 20, "four failures")
    gone = time.monotonic() - went_at
    failures = scene.pool.stats().failures
    tcp_server.start()

    # Pauses grow from 0.1 s, of which half is left to chance.
    assert failures <= 4 + gone / 0.05
    assert gone >= 0.05 + 0.1 + 0.2
    wait_until(lambda: scene.pool.stats().silence < 1.0, 20, "an answer")
    assert scene.ask(tcp_server.url, 2) == 2
    told = [r for r in caplog.records if "cannot reach Redis" in r.getMessage()]
    assert len(told) == 1


@each_kind
def test_an_outage_is_told_once_a_minute(
    tcp_server: Server,
    stage: Callable[..., Scene],
    kind: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = stage(tcp_server.url, kind)
    wait_until(lambda: scene.queue.counts().leases, 10, "it to join")
    tcp_server.kill()

    def told() -> int:
        return sum("cannot reach Redis" in r.getMessage() for r in caplog.records)

    wait_until(lambda: told() == 1, 20, "the first line")
    before = scene.pool.stats().failures
    wait_until(lambda: scene.pool.stats().failures > before + 1, 20, "more failures")
    assert told() == 1
    scene.clock.ahead += 60.0
    wait_until(lambda: told() == 2, 20, "the second line")


@each_kind
def test_what_ran_through_an_outage_is_reported_after_it(
    tcp_server: Server, stage: Callable[..., Scene], kind: str
) -> None:
    scene = stage(tcp_server.url, kind)
    handles = scene.task.submit_many([(1,), (2,), (3,)])
    wait_until(lambda: scene.pool.stats().running == 2, 10, "two to run")

    tcp_server.kill()
    wait_until(lambda: scene.pool.stats().failures >= 2, 20, "failures")
    scene.release.set()
    wait_until(lambda: scene.pool.stats().running == 0, 10, "both to end")
    tcp_server.start()

    assert scene.ask(tcp_server.url, 4) == 4
    wait_until(lambda: scene.queue.counts().outcomes == 4, 20, "all to be reported")
    assert [handle.result(timeout=20) for handle in handles] == [1, 2, 3]
    assert scene.queue.counts().stats["done"] == 4
    assert scene.pool.stats().refused == 0


@each_kind
def test_a_connection_that_is_half_open_is_hung_up_after_a_minute(
    tcp_server: Server,
    make_proxy: Make,
    stage: Callable[..., Scene],
    kind: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    proxy = make_proxy(tcp_server)
    scene = stage(patient_client(proxy.url), kind)
    scene.release.set()
    assert scene.task.submit(1).result(timeout=10) == 1

    proxy.hang_all()
    wait_until(lambda: scene.pool.stats().silence > 2.5, 20, "a silence")
    with caplog.at_level(logging.WARNING):
        scene.clock.ahead += 60.0
        wait_until(lambda: scene.pool.stats().silence < 1.0, 20, "an answer")

    hung_up = [r for r in caplog.records if "is reconnecting" in r.getMessage()]
    assert len(hung_up) == 1
    assert scene.ask(tcp_server.url, 2) == 2


def test_a_plain_worker_hangs_up_a_connection_that_is_half_open_after_a_minute(
    tcp_server: Server,
    make_proxy: Make,
    key_prefix: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def double(number: int) -> int:
        return 2 * number

    proxy, clock = make_proxy(tcp_server), MovedClock()
    queue = TaskQueue(key_prefix, patient_client(proxy.url))
    queue.task(name="double")(double)
    worker = Worker(queue, clock=clock)
    thread = Thread(target=worker.run)
    thread.start()
    with TaskQueue(key_prefix, tcp_server.url) as sound:
        task = sound.task(name="double")(double)
        assert task.submit(1).result(timeout=20) == 2

        proxy.hang_all()
        waiting = task.submit(2)
        with caplog.at_level(logging.WARNING):
            clock.ahead += 60.0
            result = waiting.result(timeout=20)

    worker.stop()
    thread.join(20)
    queue.close()
    assert result == 4
    assert "is reconnecting: Redis has not answered for 6" in caplog.text
    assert not thread.is_alive()


@each_kind
def test_a_server_that_hangs_for_long_is_not_asked_in_a_loop(
    tcp_server: Server,
    stage: Callable[..., Scene],
    kind: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = stage(patient_client(tcp_server.url), kind)
    scene.release.set()
    assert scene.task.submit(1).result(timeout=10) == 1
    tcp_server.pause()
    try:
        wait_until(lambda: scene.pool.stats().silence > 1.5, 20, "a silence")
        for minute in range(1, 4):
            scene.clock.ahead += 60.0
            wait_until(
                lambda: caplog.text.count("is reconnecting") == minute,  # noqa: B023
                20,
                "the watchdog",
            )
        failures = scene.pool.stats().failures
    finally:
        tcp_server.resume()

    assert failures <= 3
    assert scene.ask(tcp_server.url, 2) == 2


@each_kind
def test_a_task_is_told_that_its_lease_is_lost_while_redis_is_silent(
    tcp_server: Server, key_prefix: str, kind: Any
) -> None:
    from workstealing.tasks.context import current_context

    queue = TaskQueue(key_prefix, patient_client(tcp_server.url), lease=1.0)
    told, running = Event(), Event()

    @queue.task(name="look")
    def look() -> None:
        context = current_context()
        assert context is not None
        running.set()
        while not context.lease_lost:
            time.sleep(0.005)
        told.set()

    pool = WorkerPool(queue, 1, kind)
    pool.start()
    look.submit()
    assert running.wait(10)
    tcp_server.pause()
    try:
        assert told.wait(20)
    finally:
        tcp_server.resume()
        pool.stop(hot=True)
        queue.close()
