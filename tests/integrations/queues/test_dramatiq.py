"""Dramatiq workers enlist when a message is over, whatever became of it."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from workstealing import Recruiter
from workstealing.testing import wait_until

dramatiq = pytest.importorskip("dramatiq")


@pytest.fixture
def recruiter() -> Recruiter:
    """A recruiter without jobs: its calls are counted."""
    return Recruiter()


@pytest.fixture
def broker(recruiter: Recruiter) -> Iterator[Any]:
    """A broker in memory, with the middleware that we would have last."""
    from dramatiq.brokers.stub import StubBroker

    from workstealing.integrations.dramatiq import DramatiqEnlistMiddleware

    broker = StubBroker()
    broker.add_middleware(DramatiqEnlistMiddleware(recruiter, idle_every=0.01))
    yield broker
    broker.close()


@pytest.fixture
def worker(broker: Any) -> Iterator[Any]:
    """A worker of two threads."""
    worker = dramatiq.Worker(broker, worker_threads=2, worker_timeout=10)
    yield worker
    worker.stop()


@pytest.mark.parametrize("error", [None, ValueError("not today")])
def test_a_message_enlists_once_whether_it_succeeds_or_fails(
    error: Exception | None, broker: Any, worker: Any, recruiter: Recruiter
) -> None:
    @dramatiq.actor(broker=broker, max_retries=0)
    def task() -> None:
        if error is not None:
            raise error

    worker.start()
    task.send()
    wait_until(lambda: recruiter.stats().calls, 10.0, "a call")
    worker.join()

    assert recruiter.stats().calls == 1


def test_a_delayed_message_enlists_when_it_is_over_not_when_it_is_due(
    broker: Any, worker: Any, recruiter: Recruiter
) -> None:
    seen: list[int] = []

    @dramatiq.actor(broker=broker)
    def task() -> None:
        seen.append(recruiter.stats().calls)

    worker.start()
    task.send_with_options(delay=1)
    wait_until(lambda: recruiter.stats().calls, 10.0, "a call")
    worker.join()

    assert seen == [0]
    assert recruiter.stats().calls == 1


def test_a_message_is_acknowledged_before_its_slice(broker: Any, worker: Any) -> None:
    unfinished: list[int] = []
    recruiter = Recruiter(share=None)
    recruiter.install(
        lambda: unfinished.append(broker.queues["default"].unfinished_tasks),
        "look",
        rate=1.0,
    )
    from workstealing.integrations.dramatiq import DramatiqEnlistMiddleware

    broker.add_middleware(DramatiqEnlistMiddleware(recruiter, idle_every=None))

    @dramatiq.actor(broker=broker)
    def task() -> None:
        return None

    worker.start()
    task.send()
    wait_until(lambda: unfinished, 10.0, "a slice")

    assert unfinished == [0]


def test_a_worker_with_a_message_is_not_idle(broker: Any, worker: Any) -> None:
    from workstealing.integrations.dramatiq import DramatiqEnlistMiddleware

    begun, end = Event(), Event()
    slices: list[int] = []
    recruiter = Recruiter()
    recruiter.install(lambda: slices.append(1), "slices", rate=1e-9)
    enlisting = DramatiqEnlistMiddleware(recruiter, idle_every=1000)
    broker.add_middleware(enlisting)

    @dramatiq.actor(broker=broker)
    def task() -> None:
        begun.set()
        end.wait(10)

    worker.start()
    look_in = enlisting._ticker._run_now  # as the ticker does after its interval
    look_in()
    task.send()
    assert begun.wait(10)
    look_in()
    end.set()

    assert slices == [1]


def test_the_slices_of_an_idle_worker_end_with_it(
    broker: Any, recruiter: Recruiter
) -> None:
    slices: list[int] = []
    recruiter.install(lambda: slices.append(1), "slices", rate=1e-9)
    worker = dramatiq.Worker(broker, worker_threads=1, worker_timeout=10)
    worker.start()
    wait_until(lambda: slices, 10.0, "an idle worker")

    worker.stop()

    [enlisting] = [
        m for m in broker.middleware if type(m).__name__ == "DramatiqEnlistMiddleware"
    ]
    assert enlisting._ticker is None
