"""What befell a task is told afterwards, in order, with durations that add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from workstealing.client.queue_internals import internals_of
from workstealing.inspecting import Inspector
from workstealing.queue.inspection_calls import counts, trace
from workstealing.queue.worker_calls import exchange, join
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until


def fill_a_deque(parts: Any) -> None:
    """Let two workers that nobody runs have all tasks, two of them in a deque."""
    settings = replace(parts.settings, lease_ms=600_000)
    keys, call = parts.keys, parts.driver.call
    for worker in "vu":
        call(join(keys, settings, worker, "1", {"abilities": []}))
    call(exchange(keys, settings, "v", "1", want=1, keep=10))
    call(exchange(keys, settings, "u", "1", want=10, keep=0))
    assert call(counts(keys)).inbox == (0, 0, 0)


def steals(parts: Any, task_id: str) -> int:
    return int(parts.driver.call(trace(parts.keys, task_id)).steals)


def test_a_task_that_was_stolen_by_a_worker_that_died_tells_its_life(
    redis_server: Server, make_story: Callable[..., Any], processes: Any
) -> None:
    story = make_story(redis_server)
    parts = internals_of(story.queue)
    handles = story.hold.submit_many([(number,) for number in range(4)])
    fill_a_deque(parts)
    thief = processes.start(story)

    def stolen() -> Any:
        running = (one for one in handles if one.state().state is State.RUNNING)
        return next((one for one in running if steals(parts, one.id)), None)

    handle = wait_until(stolen, 30, "a stolen task to run")
    dead = handle.state().worker
    thief.kill()
    story.sound.set(story.key("go"), 1)
    processes.start(story)
    assert handle.result(timeout=60) == "done"
    task_id = handle.id

    told = Inspector(story.queue).why(task_id)
    life = told.biography
    assert life is not None
    assert life.is_whole
    words = [
        "deque of v",
        f"stolen by {dead}",
        f"{dead} died while running it",
        "from its start until its lease had ended",
        "until it was given back",
        "ran ",
        "done.",
        "in all",
    ]
    places = [str(life).find(word) for word in words]
    assert -1 not in places, str(life)
    assert places == sorted(places), str(life)
    first, *_, last = parts.driver.call(trace(parts.keys, task_id)).events
    assert (first[0], last[0]) == ("n", "e")
    assert life.total_ms == int(last[1:]) - int(first[1:])
    assert any("Its life:" in sentence for sentence in told.sentences)
