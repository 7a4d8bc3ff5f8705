"""A worker is killed at a call, or what it sends or is answered is lost.

It joins, takes, steals, settles or hands back; the call never arrives, or is done and
nobody knows.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest

from workstealing import Worker
from workstealing.client.queue_internals import internals_of
from workstealing.queue import worker_calls
from workstealing.queue.scripts import load_script
from workstealing.testing import Server, wait_until

Make = Callable[..., Any]
NUMBER = 300
_TIMES = 3
_IDLE: dict[str, list[str]] = {"abilities": []}

each_call = pytest.mark.parametrize("script", ["join", "exchange", "steal", "leave"])


def sent(script: str) -> Callable[[bytes], bool]:
    """Tell whether a request runs a script."""
    sha = load_script("workstealing.queue", script).sha.encode()
    return lambda request: sha in request


@contextmanager
def somebody_to_rob(story: Any) -> Iterator[None]:
    """Be a worker that has half of all tasks in its deque, and runs one for ever."""
    parts = internals_of(story.queue)
    keys, call = parts.keys, parts.driver.call
    settings = replace(parts.settings, lease_ms=60_000)
    # One that is alone has no deque; one that starves would be fed.
    for name in ("rich.0", "poor.0"):
        call(worker_calls.join(keys, settings, name, "i", _IDLE))
    call(worker_calls.exchange(keys, settings, "rich.0", "i", want=1, keep=NUMBER))
    # From now on the server knows the scripts: none is sent a second time.
    call(worker_calls.steal(keys, "nobody.0", "poor.0"))
    call(worker_calls.leave(keys, "poor.0", "i", final=True))
    assert story.queue.counts().loads == {"rich.0": NUMBER // 2}
    yield
    call(worker_calls.leave(keys, "rich.0", "i", final=True))


def assert_all_done_once(story: Any) -> None:
    counts = story.queue.wait(timeout=40)
    assert set(story.runs()) == set(range(NUMBER))
    assert counts.stats["done"] == counts.outcomes == NUMBER
    assert counts.tasks == counts.assigned == 0


@pytest.mark.parametrize("arrives", [False, True], ids=["lost", "done"])
@each_call
def test_a_worker_that_dies_at_a_call_loses_nothing_and_completes_nothing_twice(
    redis_server: Server,
    tcp_server: Server,
    make_story: Make,
    make_proxy: Make,
    processes: Any,
    script: str,
    arrives: bool,
) -> None:
    proxy = make_proxy(tcp_server)
    story = make_story(tcp_server, notes=redis_server)
    victims = make_story(tcp_server, proxy.url, redis_server)
    story.pause.submit_many([(n, 0.005) for n in range(NUMBER)])
    with somebody_to_rob(story):
        victim = processes.launch(victims, pool="victim")
        proxy.kill_at(sent(script), victim, arrives=arrives)
        if script == "leave":
            wait_until(lambda: len(story.runs()) > 10, 20, "it to work")
            victim.send_signal(signal.SIGTERM)
        wait_until(lambda: victim.poll() is not None, 20, "it to die")
        assert victim.returncode == -signal.SIGKILL
        if script == "steal":
            # Between its theft and its taking any of it, or before.
            assert ("victim.0" in story.queue.counts().loads) == arrives

    processes.start(story, pool="other")

    assert_all_done_once(story)


@pytest.mark.parametrize("arrives", [False, True], ids=["lost", "done"])
@each_call
def test_a_worker_whose_calls_or_answers_are_lost_runs_everything_once(
    redis_server: Server,
    tcp_server: Server,
    make_story: Make,
    make_proxy: Make,
    script: str,
    arrives: bool,
) -> None:
    proxy = make_proxy(tcp_server)
    story = make_story(tcp_server, notes=redis_server)
    unlucky = make_story(tcp_server, proxy.url, redis_server)
    story.pause.submit_many([(n, 0.005) for n in range(NUMBER)])
    is_one = first(_TIMES, sent(script))
    if arrives:
        proxy.cut_reply_if(is_one)
    else:
        proxy.lose_request_if(is_one)
    with somebody_to_rob(story):
        worker = Worker(unlucky.queue)
        thread = Thread(target=worker.run)
        thread.start()
        wait_until(lambda: len(story.runs()) > NUMBER // 4, 20, "it to work")
        if script == "steal":
            wait_until(lambda: worker.stats.stolen, 20, "a theft")
        if script == "leave":
            worker.stop()
            thread.join(20)
    if script == "leave":
        # Nobody else knows that it has left before its lease has ended.
        Worker(story.queue).run(until_empty="all")
    counts = story.queue.wait(timeout=40)
    worker.stop()
    thread.join(20)

    assert sorted(story.runs()) == list(range(NUMBER))
    assert counts.stats["done"] == counts.outcomes == NUMBER
    assert counts.tasks == counts.assigned == 0


def first(times: int, condition: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
    """Tell whether a request is among the first of its kind."""
    left = times

    def is_one(request: bytes) -> bool:
        nonlocal left
        is_of_kind = left > 0 and condition(request)
        left -= is_of_kind
        return is_of_kind

    return is_one
