"""Workers on a client that waits 50 ms for a reply, as one for side work does."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from workstealing import TaskQueue, Worker, WorkerPool, connect
from workstealing.client.queue_internals import internals_of
from workstealing.testing import Server, wait_until

_SECONDS = 20


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    with connect(redis_server.url) as client:
        yield TaskQueue(key_prefix, client)


def test_an_idle_worker_rests_without_taking_that_for_an_outage(
    queue: TaskQueue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    double = queue.task(name="double")(lambda n: 2 * n)
    worker = Worker(queue)
    thread = Thread(target=worker.run, daemon=True)
    thread.start()
    wait_until(lambda: worker.stats.exchanges > 3, _SECONDS, "it to look some times")

    handle = double.submit(4)
    assert handle.result(_SECONDS) == 8
    worker.stop()
    thread.join(_SECONDS)

    assert worker.stats.failures == 0
    assert "cannot reach Redis" not in caplog.text


def test_an_idle_pool_is_woken(queue: TaskQueue, redis_client: Any) -> None:
    double = queue.task(name="double")(lambda n: 2 * n)
    pool = WorkerPool(queue, 2, "threads")
    pool.start()
    bell = internals_of(queue).keys.bell

    def is_listening() -> bool:
        return any(one["cmd"] == "blpop" for one in redis_client.client_list())

    wait_until(is_listening, _SECONDS, "it to listen")
    for number in range(5):
        assert double.submit(number).result(_SECONDS) == 2 * number
    failures = pool.stats().failures
    pool.stop(hot=True)

    assert failures == 0
    assert redis_client.llen(bell) <= 2
