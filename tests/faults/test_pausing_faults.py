"""Workers die while a queue or a name is paused: nothing is lost, nothing doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from workstealing import Inspector, State
from workstealing.testing import Server, wait_until

Make = Callable[..., Any]


def done(story: Any) -> int:
    return int(story.queue.counts().stats.get("done", 0))


# Many, for on a busy machine some time may pass before it is seen that they are begun.
TASKS = 3_000


@pytest.mark.parametrize("name", [None, "pause"])
def test_workers_that_are_killed_while_paused_lose_and_double_nothing(
    redis_server: Server, make_story: Make, processes: Any, name: str | None
) -> None:
    story = make_story(redis_server)
    handles = story.pause.submit_many([(n, 0.004) for n in range(TASKS)])
    victims = [processes.start(story) for _ in range(3)]
    wait_until(lambda: done(story) > 200, 20, "some to be done")

    story.queue.pause(name)
    # What each has picked up, some 50 ms of work, it still does.
    wait_until(lambda: running(story) == 0, 20, "what runs to end")
    ended, ran = done(story), len(story.runs())
    for victim in victims[:2]:
        victim.kill()
        victim.wait()
    processes.start(story)
    note = story.note.submit(-1)
    if name is None:
        assert not note.state().worker
    else:
        assert note.result(timeout=20) == -1, "others run past it"
    wait_until(lambda: dead(story) == 0, 20, "the tasks of the dead to come back")
    assert done(story) == ended + (name is not None)
    assert len(story.runs()) == ran + (name is not None)
    waiting = next(one for one in handles[::-1] if one.state().state is State.PAUSED)
    assert "is paused" in waiting.state().reason

    assert story.queue.resume(name)
    story.queue.wait(timeout=30)

    runs = Counter(story.runs())
    assert set(runs) == set(range(-1, TASKS))
    assert set(runs.values()) == {1}, "nobody died while it ran a task"
    counts = story.queue.counts()
    assert counts.stats["done"] == counts.outcomes == TASKS + 1
    assert (counts.paused, bool(counts.pauses)) == (0, False)


def running(story: Any) -> int:
    return int(Inspector(story.queue).stat().running)


def dead(story: Any) -> int:
    counts = story.queue.counts()
    return sum(end <= counts.now_ms for end in counts.leases.values()) + (
        len(counts.leases) > 2
    )
