"""Processes that start while their server is away, and stay until it is there."""

from __future__ import annotations

from threading import Thread

import pytest
from redis.exceptions import ConnectionError as NotConnected

from workstealing import (
    Duty,
    Recruiter,
    TaskQueue,
    Worker,
    WorkerPool,
    WorkStealer,
    connect,
)
from workstealing.drivers.own_server import free_port
from workstealing.errors import RedisError
from workstealing.jobs import CounterFlush
from workstealing.testing import ClusterOfThree, wait_until

FORMS = [
    "redis://127.0.0.1:{}/0",
    "redis+sentinel://127.0.0.1:{}/main",
    "redis+cluster://127.0.0.1:{}",
]


@pytest.fixture(params=FORMS, ids=["single", "sentinel", "cluster"])
def absent(request: pytest.FixtureRequest) -> str:
    return str(request.param).format(free_port())


def test_a_host_whose_server_is_away_starts_and_enlists(absent: str) -> None:
    counters = CounterFlush(absent, "hits", lambda *_: None)
    recruiter = Recruiter(share=None, breaker=None)
    recruiter.install(counters, "counters", rate=0.5)
    recruiter.install(WorkStealer(TaskQueue("absent", absent)), "tasks", rate=0.5)

    duties = {recruiter.enlist() for _ in range(20)}

    assert duties == {Duty.DISMISSED}
    assert all(job.last_error for job in recruiter.stats().jobs.values())
    with pytest.raises(RedisError):
        counters.increment("page")


def test_a_worker_whose_server_is_away_waits_for_it(absent: str) -> None:
    with TaskQueue("absent", absent) as queue:
        worker = Worker(queue)
        thread = Thread(target=worker.run, daemon=True)
        thread.start()

        wait_until(lambda: worker.stats.failures >= 2, 20, "it to try again")
        assert thread.is_alive()
        worker.stop()
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_pool_whose_server_is_away_waits_for_it(absent: str, kind: str) -> None:
    with TaskQueue("absent", absent) as queue:
        pool = WorkerPool(queue, 1, kind)
        pool.start()
        wait_until(lambda: pool.stats().failures >= 2, 20, "it to try again")

        assert pool.stop(timeout=5) == 0


def test_a_cluster_that_goes_away_while_it_is_asked_for_its_commands_is_asked_again(
    redis_cluster: ClusterOfThree, key_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise NotConnected

    with monkeypatch.context() as broken:
        broken.setattr("redis.cluster.CommandsParser", fails)
        client = connect(redis_cluster.url, timeout=5)
        with pytest.raises(NotConnected):
            client.set(key_prefix, "1")

    assert client.set(key_prefix, "1")
    client.close()
