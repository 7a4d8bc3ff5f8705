"""What meets a worker while it runs a batch and its next exchange is under way.

Nothing is lost and nothing is done twice, whether the exchange or its reply is lost,
and whether the worker survives that.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from workstealing import Worker
from workstealing.client.queue_internals import internals_of
from workstealing.queue.scripts import load_script
from workstealing.testing import Server, wait_until

Make = Callable[..., Any]

_TASKS = 600
_EXCHANGE = load_script("workstealing.queue", "exchange").sha.encode()


def under_way(
    story: Any, worker: str, times: int = 1, skip: int = 2
) -> Callable[[bytes], bool]:
    """Tell whether a request is an exchange behind which a batch is being run.

    Such a worker holds more than it reports. The first few are let pass.
    """
    running = internals_of(story.queue).keys.running(worker)
    seen = 0

    def is_under_way(request: bytes) -> bool:
        nonlocal seen
        reports = request.count(b"$4\r\ndone\r\n")
        if _EXCHANGE not in request or not reports:
            return False
        if story.sound.hlen(running) <= reports:
            return False
        seen += 1
        return skip < seen <= skip + times

    return is_under_way


def prepared(
    server: Server, make_story: Make, make_proxy: Make, lease: float
) -> tuple[Any, Any, Any]:
    """Return a story with tasks, the same behind a proxy, and the proxy."""
    story, proxy = make_story(server, lease=lease), make_proxy(server)
    # From now on the server knows the scripts: none is sent a second time.
    story.note.submit(-1)
    Worker(story.queue).run(until_empty=True)
    story.pause.submit_many([(n, 0.001) for n in range(_TASKS)])
    return story, make_story(server, url=proxy.url, lease=lease), proxy


def assert_nothing_is_lost_or_done_twice(story: Any) -> Counter[int]:
    story.queue.wait(timeout=60)
    counts = story.queue.counts()
    assert counts.stats["done"] == counts.outcomes == _TASKS + 1
    runs = Counter(number for number in story.runs() if number >= 0)
    assert set(runs) == set(range(_TASKS))
    return runs


@pytest.mark.timeout(120)
@pytest.mark.parametrize("arrives", [False, True], ids=["unsent", "unread"])
def test_a_worker_that_is_killed_repeats_no_more_than_it_had_not_reported(
    tcp_server: Server,
    make_story: Make,
    make_proxy: Make,
    processes: Any,
    arrives: bool,
) -> None:
    story, behind, proxy = prepared(tcp_server, make_story, make_proxy, 1.0)
    victim = processes.launch(behind, pool="victim")
    proxy.kill_at(under_way(story, "victim.0"), victim, arrives=arrives)
    wait_until(lambda: victim.poll() is not None, 30, "it to die")
    processes.start(story)

    runs = assert_nothing_is_lost_or_done_twice(story)
    assert set(runs.values()) <= {1, 2}
    again = sum(times > 1 for times in runs.values())
    # As many as last 50 ms, and the one that ran.
    assert again <= 51


@pytest.mark.timeout(120)
@pytest.mark.parametrize("arrives", [False, True], ids=["unsent", "unread"])
def test_a_worker_whose_connection_is_cut_runs_nothing_twice(
    tcp_server: Server,
    make_story: Make,
    make_proxy: Make,
    processes: Any,
    arrives: bool,
) -> None:
    story, behind, proxy = prepared(tcp_server, make_story, make_proxy, 10.0)
    lost: list[bytes] = []
    is_under_way = under_way(story, "cut.0", times=3)

    def is_lost(request: bytes) -> bool:
        if is_under_way(request):
            lost.append(request)
            return True
        return False

    (proxy.cut_reply_if if arrives else proxy.lose_request_if)(is_lost)
    processes.start(behind, pool="cut")

    runs = assert_nothing_is_lost_or_done_twice(story)
    assert set(runs.values()) == {1}
    assert len(lost) == 3


@pytest.mark.timeout(120)
def test_what_a_frozen_worker_reports_of_its_batch_in_hand_is_refused(
    tcp_server: Server, make_story: Make, make_proxy: Make, processes: Any
) -> None:
    story, behind, proxy = prepared(tcp_server, make_story, make_proxy, 1.0)
    frozen = processes.launch(behind, pool="frozen")
    is_frozen: list[bool] = []

    def freeze() -> None:
        os.kill(frozen.pid, signal.SIGSTOP)
        is_frozen.append(True)

    proxy.cut_reply_if(under_way(story, "frozen.0"), freeze)
    wait_until(lambda: is_frozen, 30, "it to be frozen")
    processes.start(story)
    story.queue.wait(timeout=60)
    os.kill(frozen.pid, signal.SIGCONT)
    members = internals_of(story.queue).keys.members
    wait_until(lambda: story.sound.hexists(members, "frozen.0"), 20, "its return")

    runs = assert_nothing_is_lost_or_done_twice(story)
    assert set(runs.values()) <= {1, 2}
