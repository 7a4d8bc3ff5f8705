"""Workers and producers are killed at every hand-over of a chain and a group."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from workstealing import State, group
from workstealing.client.queue_internals import internals_of
from workstealing.queue.upkeep_calls import expire
from workstealing.testing import Server, wait_until

_CHILD = Path(__file__).parent / "composed_child.py"
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def composed(redis_server: Server, key_prefix: str) -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("composed_child", _CHILD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    composed = module.Composed(key_prefix, redis_server.url)
    yield composed
    composed.sound.close()
    composed.queue.close()


@pytest.fixture
def start(redis_server: Server, key_prefix: str) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*role: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, str(_CHILD), key_prefix, redis_server.url, *role],
            env={**os.environ, "PYTHONPATH": str(_CHILD.parents[2])},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.wait(20)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 9))
def test_a_step_is_handed_over_once_whenever_a_worker_is_killed(
    composed: Any, start: Start, when: str, number: int
) -> None:
    members = group(composed.member.s(n) for n in range(3))
    handle = (
        members | composed.add_up.s() | composed.follow.s() | composed.follow.s()
    ).submit()
    victim = start("worker", when, str(number))
    assert victim.wait(30) == -signal.SIGKILL
    start("worker", "after", "0")

    assert handle.result(timeout=30) == 5
    runs = Counter(_ran(composed))
    names = [*(f"member {n}" for n in range(3)), "add_up", "follow 3", "follow 4"]
    assert set(runs) == set(names)
    # Only what the victim ran, and had not reported, is run again.
    assert sum(runs.values()) <= len(names) + 1
    counts = composed.queue.counts()
    assert (counts.stats["done"], counts.stats["submitted"]) == (6, 6)
    assert (counts.tasks, counts.steps) == (0, 0)
    assert handle.group.progress().done == 3


def test_a_group_whose_producer_was_killed_is_given_up_after_a_while(
    composed: Any, start: Start
) -> None:
    producer = start("producer")
    assert producer.wait(30) == -signal.SIGKILL
    parts = internals_of(composed.queue)
    client: Any = parts.driver.client
    ((group_id, _),) = client.zrange(parts.keys.group_times, 0, -1, withscores=True)
    step = composed.queue.handle(group_id.decode())
    assert step.state().state is State.WAITING
    start("worker", "after", "0")
    wait_until(lambda: len(_ran(composed)) == 998, 30, "its members to be run")
    assert step.state().state is State.WAITING

    # A minute later:
    client.zadd(parts.keys.group_times, {group_id: 1})
    parts.driver.call(expire(parts.keys, parts.settings, most=100))

    assert step.state().state is State.CANCELLED
    assert "only a part of its 3000 members was submitted" in step.state().reason
    counts = composed.queue.wait(timeout=30)
    assert (counts.tasks, counts.steps) == (0, 0)
    assert not client.exists(parts.keys.groups, parts.keys.group_times)


def _ran(composed: Any) -> list[str]:
    found = composed.sound.lrange(f"{composed.queue.name}:ran", 0, -1)
    return [one.decode() for one in found]
