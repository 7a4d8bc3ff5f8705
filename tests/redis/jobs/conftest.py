"""What tests of ready-made jobs share: two kinds of server, slices in single steps."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import ResponseError

from workstealing import Duty
from workstealing.drivers.sync_driver import Driver
from workstealing.queue.steps import Flow, Nodes, Step


@pytest.fixture(params=["redis_client", "fake_redis"], ids=["embedded", "fakeredis"])
def any_redis(request: pytest.FixtureRequest) -> Redis:
    return request.getfixturevalue(request.param)


@pytest.fixture(
    params=["async_redis_client", "async_fake_redis"], ids=["embedded", "fakeredis"]
)
def any_async_redis(request: pytest.FixtureRequest) -> AsyncRedis:
    return request.getfixturevalue(request.param)


@pytest.fixture
def field_expiry(any_redis: Redis) -> None:
    """The server expires fields of hashes by itself, or the test is skipped."""
    if not expires_fields(any_redis):
        pytest.skip("the server has no HPEXPIREAT: Redis 7.4 and Valkey 9 have")


def expires_fields(client: Redis) -> bool:
    try:
        client.hpexpireat("no such key", 1, "field")
    except ResponseError:
        return False
    return True


class SteppedSlice:
    """A slice that goes on only when the test says so; drop it to crash the recruit."""

    def __init__(
        self, driver: Driver, flow: Flow[Duty], nodes: tuple[str, ...] | None = None
    ) -> None:
        self._driver, self._flow, self._nodes = driver, flow, nodes
        self._next: Step | None = next(flow)
        self.duty: Duty | None = None

    @property
    def ended(self) -> bool:
        return self._next is None

    def step(self) -> None:
        """Perform the next step; a failure enters the flow, as with a driver."""
        assert self._next is not None
        try:
            try:
                answer = self._perform(self._next)
            except Exception as error:
                self._next = self._flow.throw(error)
            else:
                self._next = self._flow.send(answer)
        except StopIteration as end:
            self._next, self.duty = None, end.value

    def finish(self) -> Duty | None:
        while not self.ended:
            self.step()
        return self.duty

    def _perform(self, step: Step) -> Any:
        if isinstance(step, Nodes) and self._nodes is not None:
            return self._nodes
        return self._driver._perform(step)


@pytest.fixture
def stepped() -> Callable[..., SteppedSlice]:
    return SteppedSlice


@pytest.fixture
def both_at_once() -> Callable[..., list[Any]]:
    """Run two functions in two threads that start together; return their answers."""

    def run(*functions: Callable[[], Any]) -> list[Any]:
        barrier = Barrier(len(functions), timeout=10)
        answers: list[Any] = [None] * len(functions)

        def work(place: int) -> None:
            barrier.wait()
            try:
                answers[place] = functions[place]()
            except Exception as error:
                answers[place] = error

        threads = [Thread(target=work, args=(n,)) for n in range(len(functions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    return run
