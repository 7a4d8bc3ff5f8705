"""Promise 1: a Redis that is down or hangs costs its host next to nothing.

The host's time is simulated, six milliseconds a call; the sockets are real, and each
slice that meets the dead server moves the clock by what the client's timeout allows.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import redis

from workstealing import Recruiter, connect
from workstealing.telemetry.events import Outcome
from workstealing.testing import ManualClock, Server

SECONDS_PER_CALL = 0.006


@pytest.fixture
def hanging_address() -> Iterator[str]:
    """Accept connections, and never answer."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def refusing_address() -> str:
    with closing(socket.socket()) as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    return f"redis://127.0.0.1:{port}"


class Host:
    """A loop that enlists; one job of rate 0.01 pings a server."""

    def __init__(self, client: redis.Redis) -> None:
        self.clock = ManualClock()
        self.lost = 0.0
        self.client = client
        self.recruiter = Recruiter(clock=self.clock)
        self.recruiter.install(self.ping, "ping", rate=0.01)

    def ping(self) -> None:
        began_at = time.perf_counter()
        try:
            self.client.ping()
        except redis.RedisError:
            spent = time.perf_counter() - began_at
            self.lost += spent
            self.clock.advance(spent)
            raise

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self.clock.advance(SECONDS_PER_CALL)
            self.recruiter.enlist()


@pytest.mark.parametrize("address", ["hanging_address", "refusing_address"])
def test_a_minute_without_redis_costs_less_than_two_percent_of_it(
    address: str, request: pytest.FixtureRequest
) -> None:
    with closing(connect(request.getfixturevalue(address))) as client:
        host = Host(client)

        host.run(10_000)

    stats = host.recruiter.stats().jobs["ping"]
    assert stats.outcomes[Outcome.RECRUITED] == 0
    assert 4 <= stats.outcomes[Outcome.ERROR] <= 12
    assert host.lost / host.clock.monotonic() < 0.02


def test_side_work_resumes_within_fifteen_seconds_of_the_return() -> None:
    with Server(tcp=True) as server, closing(connect(server.url)) as client:
        host = Host(client)
        host.run(500)
        assert host.recruiter.stats().jobs["ping"].recruited > 0

        server.kill()
        host.run(10_000)
        errors = host.recruiter.stats().jobs["ping"].outcomes[Outcome.ERROR]
        assert errors > 0

        server.start()
        returned_at = host.clock.monotonic()
        before = host.recruiter.stats().jobs["ping"].recruited
        while host.recruiter.stats().jobs["ping"].recruited == before:
            host.run(10)

        assert host.clock.monotonic() - returned_at < 15.0
