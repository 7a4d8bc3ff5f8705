"""RQ workers of every kind end when they would have ended."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

from workstealing import Recruiter
from workstealing.errors import ConfigurationError

rq = pytest.importorskip("rq")


@pytest.fixture(params=["SimpleWorker", "Worker"])
def make(request: pytest.FixtureRequest, redis_client: Redis, key_prefix: str) -> Any:
    """Make a worker of each kind that RQ has, and a recruiter that always recruits."""
    from workstealing.integrations.rq import RqEnlistMixin

    kind = getattr(rq, request.param)

    def make() -> tuple[Any, Recruiter]:
        recruiter = Recruiter(share=None)
        recruiter.install(lambda: None, "slices", rate=1.0)
        attributes = {"recruiter": recruiter, "idle_every": 1}
        worker_class = type("Worker", (RqEnlistMixin, kind), attributes)
        return worker_class([key_prefix], connection=redis_client), recruiter

    return make


def test_a_burst_ends_with_the_last_job_and_a_slice(
    make: Any, redis_client: Redis, key_prefix: str
) -> None:
    worker, recruiter = make()
    queue = rq.Queue(key_prefix, connection=redis_client)
    jobs = [
        queue.enqueue("operator.add", 1, number, job_id=f"{key_prefix}-{number}")
        for number in range(2)
    ]

    assert worker.work(burst=True)

    assert [job.return_value(refresh=True) for job in jobs] == [1, 2]
    assert recruiter.stats().calls == 2
    assert recruiter.stats().jobs["slices"].recruited == 3


def test_an_interval_that_is_none_is_refused_by_its_name(make: Any) -> None:
    worker, recruiter = make()
    type(worker).idle_every = 0

    with pytest.raises(ConfigurationError, match="idle_every="):
        worker.dequeue_job_and_maintain_ttl(None)

    assert recruiter.stats().jobs["slices"].recruited == 0


def test_a_worker_that_may_be_idle_for_so_long_ends_then(make: Any) -> None:
    worker, recruiter = make()

    assert not worker.work(max_idle_time=2)

    assert recruiter.stats().calls == 0
    assert recruiter.stats().jobs["slices"].recruited >= 2
