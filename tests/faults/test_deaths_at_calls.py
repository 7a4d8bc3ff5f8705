"""A worker is killed as it takes, settles or hands back: before its call, or after."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from workstealing.queue.scripts import load_script
from workstealing.testing import Server, wait_until

Make = Callable[..., Any]
NUMBER = 300


@pytest.mark.parametrize("arrives", [False, True], ids=["lost", "done"])
@pytest.mark.parametrize("script", ["exchange", "leave"])
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
    sha = load_script("workstealing.queue", script).sha.encode()
    victim = processes.launch(victims, pool="victim")
    proxy.kill_at(lambda request: sha in request, victim, arrives=arrives)
    if script == "leave":
        wait_until(lambda: len(story.runs()) > 10, 20, "it to work")
        victim.send_signal(signal.SIGTERM)

    wait_until(lambda: victim.poll() is not None, 20, "it to die")
    assert victim.returncode == -signal.SIGKILL
    processes.start(story, pool="other")
    counts = story.queue.wait(timeout=40)

    assert set(story.runs()) == set(range(NUMBER))
    assert counts.stats["done"] == counts.outcomes == NUMBER
    assert counts.tasks == counts.assigned == 0
