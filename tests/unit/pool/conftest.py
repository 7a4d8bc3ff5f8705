from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest

from workstealing import Pool
from workstealing.pool.work import Work


@pytest.fixture
def make_pool() -> Iterator[Callable[..., Pool]]:
    pools: list[Pool] = []

    def make(*args: Any, **kwargs: Any) -> Pool:
        pools.append(Pool(*args, **kwargs))
        return pools[-1]

    yield make
    for pool in pools:
        pool.stop(hot=True, timeout=10)


@pytest.fixture
def no_collector() -> Iterator[None]:
    """A stop that arrives in a callback of the collector is swallowed by Python."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def gates() -> Iterator[Callable[[], Event]]:
    """Events that are set at the end, whatever happens."""
    events: list[Event] = []

    def make() -> Event:
        events.append(Event())
        return events[-1]

    yield make
    for event in events:
        event.set()


@pytest.fixture
def busy(gates: Callable[[], Event]) -> Callable[[Pool], Event]:
    """Keep all workers of a pool busy, until the event is set."""

    def keep_busy(pool: Pool) -> Event:
        gate = gates()
        works = [pool.execute(gate.wait, 30) for _ in range(pool.workers)]
        assert until(lambda: all(work.running() for work in works))
        return gate

    return keep_busy


def until(is_true: Callable[[], Any], seconds: float = 10.0) -> bool:
    """Look again and again, not for ever."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., bool]:
    return until


class Flag:
    """An event without a lock: whoever sets it may be interrupted at any point."""

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        self.is_set = True

    def wait(self, seconds: float = 10.0) -> bool:
        return until(lambda: self.is_set, seconds)


@pytest.fixture
def make_flag() -> type[Flag]:
    return Flag


def spin(begun: Flag) -> None:
    """Run Python code for ever."""
    begun.set()
    while True:
        sum(range(100))


@pytest.fixture
def spinning() -> Callable[[Pool], Work[None]]:
    """Start work that never ends by itself, and wait for its beginning."""

    def start(pool: Pool) -> Work[None]:
        begun = Flag()
        work = pool.execute(spin, begun)
        assert begun.wait()
        return work

    return start
