"""A fault of the server in a ready-made job is counted, and never reaches the host."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from workstealing import Duty, Recruiter
from workstealing.jobs import QueueTracker, WindowTrimmer
from workstealing.telemetry.events import Outcome
from workstealing.testing import ManualClock, Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(tcp=True) as server:
        yield server


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("wrong type", "WrongType"),
        ("read-only", "RedisReadOnly"),
        ("full", "RedisOutOfMemory"),
        ("gone", "RedisUnavailable"),
    ],
)
def test_a_fault_is_counted_as_an_error_and_the_host_sees_a_duty(
    server: Server, fault: str, error: str
) -> None:
    # Its clock stands still, or a busy machine would let the breaker try again.
    recruiter = Recruiter(share=None, clock=ManualClock())
    with Redis.from_url(server.url) as client:
        client.zadd("log", {f"line {n}": n for n in range(10)})
        if fault == "full":
            rows = QueueTracker(
                client, "rows", next_rows=lambda *_: ["a", "b"], still_there=set
            )
            recruiter.install(rows, "job", rate=1.0)
        else:
            trimmer = WindowTrimmer(client, "log", length=1)
            recruiter.install(trimmer, "job", rate=1.0)
        if fault == "wrong type":
            client.set("log", "not a sorted set")
        elif fault == "read-only":
            client.replicaof("127.0.0.1", "1")
        elif fault == "full":
            client.config_set("maxmemory", 1)
        else:
            server.kill()

        duties = {recruiter.enlist() for _ in range(3)}

    stats = recruiter.stats()
    assert duties == {Duty.DISMISSED}
    assert stats.jobs["job"].outcomes[Outcome.ERROR] == 1
    assert str(stats.jobs["job"].last_error).startswith(error)
    assert list(stats.open_targets) != []
    assert stats.faults == 0
