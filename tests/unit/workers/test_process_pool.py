"""When a pool starts processes again that do not get to work; here the test is time."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from workstealing.errors import PoolBroken
from workstealing.testing import ManualClock
from workstealing.workers import process_pool
from workstealing.workers.child_protocol import ChildNumber, ExitCode
from workstealing.workers.process_pool import ProcessPool


class Child:
    """A process that works until the test ends it."""

    is_leaving = is_killed = was_ready = has_worked = False
    name, cause = "mill.0", "exit code 1"

    def __init__(self, index: int) -> None:
        self.index = index
        self.numbers = dict.fromkeys(ChildNumber, 0.0)
        self.process = self.pipe = self
        self.exitcode: int | None = None

    def begin(self) -> None:
        self.numbers[ChildNumber.IMPORTED] = 1.0

    def die(self) -> None:
        self.exitcode = 1

    def fail_to_open(self) -> None:
        self.exitcode = ExitCode.NOT_OPENED
        self.numbers[ChildNumber.ENDED] = 1.0

    def is_alive(self) -> bool:
        return self.exitcode is None

    def is_stuck(self) -> bool:
        return False

    def problem(self) -> None:
        return None

    def send(self, order: bytes) -> None:
        pass

    def join(self) -> None:
        pass

    def close(self) -> None:
        pass


class Scene:
    """A pool of two processes, which the test makes, and which has to look for them."""

    def __init__(self) -> None:
        self.clock = ManualClock(100.0)
        self.started: list[Child] = []
        self.refusal: OSError | None = None
        choice: Any = None
        self.pool = ProcessPool(
            (),
            choice,
            "mill",
            batch=100,
            until_empty=False,
            max_tasks=None,
            max_memory=None,
            start_method="spawn",
            tick=lambda: None,
        )
        self.pool._wanted = 2

    def start(self, context: Any, orders: Any, queues: Any, logs: Any) -> Child:
        if self.refusal is not None:
            raise self.refusal
        self.started.append(Child(orders.index))
        return self.started[-1]

    def look_for(self, seconds: float) -> int:
        """Look every 50 ms; return how many processes were started."""
        before = len(self.started)
        for _ in range(round(seconds / 0.05)):
            self.clock.advance(0.05)
            self.pool._look()
        return len(self.started) - before


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    scene = Scene()
    handle = SimpleNamespace(start=scene.start)
    monkeypatch.setattr(process_pool, "ChildHandle", handle)
    monkeypatch.setattr(process_pool, "time", scene.clock)
    yield scene
    scene.pool._ended.set()


def test_one_that_dies_again_and_again_is_started_less_and_less_often(
    scene: Scene,
) -> None:
    scene.look_for(0.05)
    scene.started[0].begin()

    for _ in range(10):
        scene.started[-1].die()
        scene.look_for(6.0)

    scene.started[-1].die()
    assert scene.look_for(4.0) == 0, "although the other one works all the time"
    assert scene.look_for(2.0) == 1
    assert scene.pool.error is None


def test_one_that_has_got_to_work_is_replaced_at_once_when_it_dies(
    scene: Scene,
) -> None:
    scene.look_for(0.05)

    for _ in range(10):
        for child in scene.started[-2:]:
            child.begin()
        scene.look_for(0.05)
        for child in scene.started[-2:]:
            child.die()
        assert scene.look_for(0.5) == 2
    assert scene.pool.error is None


def test_when_none_gets_to_work_it_gives_up(scene: Scene) -> None:
    for _ in range(5):
        scene.look_for(6.0)
        scene.started[-1].die()
    scene.look_for(0.05)

    assert isinstance(scene.pool.error, PoolBroken)


def test_a_process_that_the_system_refuses_is_asked_for_every_few_seconds(
    scene: Scene,
) -> None:
    scene.look_for(0.05)
    for child in scene.started:
        child.begin()
    scene.look_for(0.05)
    scene.refusal = BlockingIOError("no more processes")
    scene.started[0].die()
    refused = 0

    for _ in range(1200):
        try:
            scene.look_for(0.05)
        except BlockingIOError:
            refused += 1
    scene.refusal = None

    assert refused == 12, "within a minute"
    assert scene.look_for(6.0) == 1
