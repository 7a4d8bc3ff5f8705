"""A worker is killed at the very moment at which it takes or gives back a permit.

It speaks to the server through a proxy, which kills it when the script passes: before
that reaches the server, or so that it runs there and nobody reads the reply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from workstealing import Worker
from workstealing.client.queue_internals import internals_of
from workstealing.queue.keys import queue_scripts
from workstealing.testing import Server, wait_until

Make = Callable[..., Any]
_EXCHANGE = queue_scripts("workstealing.queue")("exchange").sha.encode()
_VERDICT = b"\r\n$4\r\ndone\r\n"
_TASKS = 40


def takes(data: bytes) -> bool:
    return _EXCHANGE in data and _VERDICT not in data


def gives_back(data: bytes) -> bool:
    return _EXCHANGE in data and _VERDICT in data


def held(story: Any) -> dict[bytes, bytes]:
    permits: dict[bytes, bytes] = story.sound.hgetall(
        internals_of(story.queue).keys.permits
    )
    return permits


def most_at_once(story: Any) -> int:
    """Count how many tasks of a customer ran at once, at most."""
    running: Counter[str] = Counter()
    most = 0
    for line in story.sound.lrange(story.key("events"), 0, -1):
        what, process, *_ = line.decode().split()
        if what == "killed":
            del running[process]
        else:
            running[process] += 1 if what == "begin" else -1
        most = max(most, running.total())
    return most


@pytest.mark.timeout(90)
@pytest.mark.parametrize("moment", [takes, gives_back])
@pytest.mark.parametrize("arrives", [False, True], ids=["unsent", "unread"])
def test_a_worker_killed_at_the_moment_of_a_permit_loses_and_leaks_nothing(
    tcp_server: Server,
    make_story: Make,
    make_proxy: Make,
    processes: Any,
    moment: Callable[[bytes], bool],
    arrives: bool,
) -> None:
    story, proxy = make_story(tcp_server), make_proxy(tcp_server)
    # From now on the server knows the scripts: none is sent a second time.
    story.note.submit(-1)
    Worker(story.queue).run(until_empty=True)
    story.limited.submit_many([(n, "a", 0.02) for n in range(_TASKS)])
    behind_proxy = make_story(tcp_server, url=proxy.url)
    victim = processes.launch(behind_proxy, pool="victim", batch=2, off=-300)
    proxy.kill_at(moment, victim, arrives=arrives)
    wait_until(lambda: victim.poll() is not None, 30, "it to die")
    story.sound.rpush(story.key("events"), f"killed {victim.pid}")

    if moment is takes:
        assert bool(held(story)) == arrives
    else:
        assert held(story)
        assert (story.queue.counts().stats["done"] > 1) == arrives
    for off in (0, 240):
        processes.launch(story, pool="web", off=off)
    for off in (0, 600, -86_400):
        processes.start(story, off=off)
    story.queue.wait(timeout=60)

    runs = Counter(number for number in story.runs() if number >= 0)
    assert set(runs) == set(range(_TASKS))
    twice = sum(runs.values()) - _TASKS
    if moment is takes or arrives:
        assert twice == 0, "what was not begun, or is reported, does not run again"
    else:
        assert 1 <= twice <= 2, "a report that was not sent is all that is lost"
    assert story.queue.counts().stats["done"] == _TASKS + 1
    assert most_at_once(story) <= 2
    keys = internals_of(story.queue).keys
    for key in (keys.permits, keys.permit_holders, keys.lines, keys.blocked):
        assert not story.sound.exists(key)
