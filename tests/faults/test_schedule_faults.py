"""Schedules among processes that die at their ticks, and whose clocks are wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from workstealing import TaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.client.schedule_state import ScheduleState
from workstealing.tasks.schedule import tick_id
from workstealing.testing import Server, wait_until

_CHILD = Path(__file__).parent / "schedule_child.py"
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(redis_server: Server, key_prefix: str) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(
        role: str, seconds_off: float, url: str = redis_server.url
    ) -> subprocess.Popen[bytes]:
        arguments = (key_prefix, url, role, str(seconds_off))
        process = subprocess.Popen(
            [sys.executable, str(_CHILD), *arguments],
            env={**os.environ, "PYTHONPATH": str(_CHILD.parents[2])},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    with TaskQueue(key_prefix, redis_server.url) as queue:
        yield queue


def the_one(queue: TaskQueue) -> ScheduleState:
    return queue.schedule_handle("second").state()


def fired(queue: TaskQueue) -> int:
    return sum(state.fired for state in queue.schedules())


def tasks_ever(queue: TaskQueue, client: Redis) -> set[str]:
    """Return the ids of all tasks, those that wait and those that have ended."""
    keys = internals_of(queue).keys
    found = [*client.hkeys(keys.task), *client.hkeys(keys.done)]  # type: ignore[misc]
    return {each.decode() for each in found}


def fires(data: bytes) -> bool:
    """Tell whether a request is to fire a tick, and not to report on its task."""
    return b"second@" in data and b":unique_windows" in data


def check_each_tick_once(queue: TaskQueue, client: Redis) -> None:
    queue.schedule_handle("second").pause()
    state = the_one(queue)
    assert state.last is not None
    last = int(state.last.timestamp()) * 1000
    wanted = {tick_id("second", last - 1000 * n) for n in range(state.fired)}
    assert state.passed == 0
    assert tasks_ever(queue, client) == wanted, "no tick twice, none left out"
    assert queue.counts().stats["submitted"] == state.fired


@pytest.mark.timeout(90)
def test_each_tick_is_fired_once_while_processes_die_and_clocks_are_wrong(
    start: Start, queue: TaskQueue, redis_client: Redis, key_prefix: str
) -> None:
    offsets = {"w0": 0, "w1": 240, "w2": -300, "v0": 600, "v1": -86_400}
    roles = {name: "worker" if name[0] == "w" else "web" for name in offsets}
    processes = {name: start(roles[name], offsets[name]) for name in offsets}
    wait_until(lambda: fired(queue) > 0, 30, "the first tick")

    for name in ("w0", "v0", "w1", "w2"):
        before = fired(queue)
        # At the moment of a tick: the second is over, and somebody is firing it.
        _, micros = redis_client.time()  # type: ignore[misc]
        time.sleep(1 - micros / 1e6 + 0.005 * len(name))
        processes[name].kill()
        processes[name].wait()
        processes[name] = start(roles[name], offsets[name])
        wait_until(lambda before=before: fired(queue) > before + 1, 30, "more ticks")

    check_each_tick_once(queue, redis_client)
    ran = f"{key_prefix}:ran"
    wait_until(
        lambda: len(set(redis_client.lrange(ran, 0, -1))) == the_one(queue).fired,  # type: ignore[arg-type]
        30,
        "all of them to run",
    )
    redis_client.delete(ran)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("role", ["worker", "web"])
@pytest.mark.parametrize("arrives", [False, True], ids=["unsent", "unread"])
def test_who_is_killed_as_it_fires_a_tick_neither_loses_nor_doubles_it(
    start: Start,
    tcp_server: Server,
    make_proxy: Callable[[Server], Any],
    key_prefix: str,
    role: str,
    arrives: bool,
) -> None:
    proxy = make_proxy(tcp_server)
    with (
        TaskQueue(key_prefix, tcp_server.url) as queue,
        Redis.from_url(tcp_server.url) as client,
    ):
        first = start("worker", 0, tcp_server.url)
        wait_until(lambda: fired(queue) > 0, 30, "the first tick")
        first.kill()
        first.wait()

        before = fired(queue)
        victim = start(role, 240, proxy.url)
        proxy.kill_at(fires, victim, arrives=arrives)
        wait_until(lambda: victim.poll() is not None, 30, "it to die")
        assert (fired(queue) > before) == arrives

        others = [start("worker", 600, tcp_server.url), start("web", 0, tcp_server.url)]
        wait_until(lambda: fired(queue) > before + 2, 30, "more ticks")
        check_each_tick_once(queue, client)
        assert all(one.poll() is None for one in others)


@pytest.mark.timeout(60)
def test_web_processes_alone_keep_schedules_going(
    start: Start, queue: TaskQueue, redis_client: Redis
) -> None:
    processes = [start("web", 0), start("web", 180)]
    wait_until(lambda: fired(queue) >= 2, 30, "two ticks")
    processes[0].kill()
    before = fired(queue)
    wait_until(lambda: fired(queue) >= before + 2, 30, "more ticks")

    check_each_tick_once(queue, redis_client)
    assert queue.counts().leases == {}
