"""Old and new versions of a task in one queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workstealing import TaskQueue, Worker
from workstealing.errors import PayloadInvalid
from workstealing.tasks.outcome import State
from workstealing.testing import wait_until


def test_a_new_version_runs_what_was_submitted_to_the_old_one(
    make_queue: Callable[..., TaskQueue],
) -> None:
    old, new = make_queue(), make_queue()

    @old.task(name="scale")
    def scale(number: int, factor: int) -> float:
        return number * factor

    def upgrade(payload: dict[str, Any]) -> dict[str, Any]:
        return {"number": payload["number"], "ratio": (payload["factor"], 1)}

    @new.task(name="scale", version=2, accepts={1: upgrade})
    def scale_by(number: int, ratio: tuple[int, int]) -> float:
        return number * ratio[0] / ratio[1]

    handles = [scale.submit(6, 2), scale_by.submit(6, (1, 2))]
    Worker(new).run(until_empty=True)

    assert [handle.result(timeout=5) for handle in handles] == [12.0, 3.0]


def test_an_upgrade_that_fails_is_a_dead_letter_with_its_reason(
    make_queue: Callable[..., TaskQueue],
) -> None:
    old, new = make_queue(), make_queue()

    @old.task(name="greet")
    def greet(name: str) -> str:
        return name

    def upgrade(payload: dict[str, Any]) -> dict[str, Any]:
        return {"first": payload["first_name"]}

    @new.task(name="greet", version=2, accepts={1: upgrade})
    def greet_2(first: str) -> str:
        return first

    handle = greet.submit("ann")
    Worker(new).run(until_empty=True)

    words = "cannot be upgraded from version 1: KeyError: 'first_name'"
    with pytest.raises(PayloadInvalid, match=words):
        handle.result(timeout=5)
    assert new.counts().dead == 1


def test_idle_old_workers_do_not_take_turns_with_what_only_a_busy_new_one_knows(
    make_queue: Callable[..., TaskQueue], crew: Any
) -> None:
    old, new = make_queue(), make_queue()
    going_on = []

    @new.task(name="slow")
    def slow() -> None:
        wait_until(lambda: going_on, 20, "the word to go on")

    @new.task(name="quick")
    def quick(number: int) -> int:
        return number

    crew.start(new, pool="new")
    first = slow.submit()
    wait_until(lambda: first.state().state is State.RUNNING, 10, "it to begin")
    olds = [crew.start(old, pool=f"old-{n}") for n in range(3)]
    handles = quick.submit_many([(n,) for n in range(10)])
    wait_until(
        lambda: new.counts().loads == {"new.0": 10}, 10, "them to be handed over"
    )
    # Until then the old ones may have stolen from each other.
    routed, stolen = (new.counts().stats.get(what, 0) for what in ("routed", "stolen"))
    rests = [worker.stats.exchanges + 2 for worker in olds]
    wait_until(
        lambda: all(
            worker.stats.exchanges >= rest
            for worker, rest in zip(olds, rests, strict=True)
        ),
        20,
        "the old ones to look around twice",
    )

    assert new.counts().stats["routed"] == routed >= 10
    assert new.counts().stats.get("stolen", 0) == stolen
    going_on.append(True)
    assert [handle.result(timeout=10) for handle in handles] == list(range(10))
