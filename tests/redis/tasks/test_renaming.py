"""A task that was renamed runs what was submitted under its old names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workstealing import ClientContext, TaskClient, TaskQueue, Worker
from workstealing.errors import ConfigurationError, DuplicateTask, UnknownTask
from workstealing.tasks.outcome import State

MakeQueue = Callable[..., TaskQueue]


def test_what_was_submitted_under_an_old_name_runs(make_queue: MakeQueue) -> None:
    old, new = make_queue(), make_queue()

    @old.task(name="mails.send")
    def send(to: str) -> str:
        return f"old {to}"

    @new.task(name="post.deliver", formerly=("mails.send", "mail.send"))
    def deliver(to: str) -> str:
        return f"delivered to {to}"

    handles = [send.submit("ann"), deliver.submit("bob")]
    Worker(new).run(until_empty=True)

    results = [handle.result(timeout=5) for handle in handles]
    assert results == ["delivered to ann", "delivered to bob"]


def test_old_names_have_the_versions_that_the_task_accepts(
    make_queue: MakeQueue,
) -> None:
    old, new = make_queue(), make_queue()

    @old.task(name="scale")
    def scale(number: int) -> int:
        return number

    def upgrade(payload: dict[str, Any]) -> dict[str, Any]:
        return {"numbers": [payload["number"]]}

    @new.task(name="scale_all", version=2, accepts={1: upgrade}, formerly=["scale"])
    def scale_all(numbers: list[int]) -> int:
        return 10 * sum(numbers)

    handle = scale.submit(4)
    Worker(new).run(until_empty=True)

    assert handle.result(timeout=5) == 40
    assert new.registry.abilities() == (
        *("scale@1", "scale@2"),
        *("scale_all@1", "scale_all@2"),
    )


def test_a_parked_task_is_taken_by_a_worker_that_knows_its_old_name(
    make_queue: MakeQueue,
) -> None:
    old, other, new = make_queue(), make_queue(), make_queue()

    @old.task(name="before")
    def before() -> str:
        return "before"

    @new.task(name="after", formerly=("before",))
    def after() -> str:
        return "after"

    handle = before.submit()
    Worker(other).run(until_empty=True)
    assert handle.state().state is State.PARKED
    Worker(new).run(until_empty="all")

    assert handle.result(timeout=5) == "after"


def test_a_client_calls_a_task_by_its_old_name(queue: TaskQueue) -> None:
    @queue.task(name="after", formerly=("before",))
    def after(number: int) -> int:
        return number + 1

    handle = TaskClient(queue).submit(ClientContext(), "before", {"number": 1}, int)
    Worker(queue).run(until_empty=True)

    assert handle.result(timeout=5) == 2
    with pytest.raises(UnknownTask, match="'before' has no version 7 here, only 1"):
        queue.registry.find("before", 7)


def test_a_name_is_of_one_task_only(queue: TaskQueue) -> None:
    queue.task(name="now", formerly=("then",))(lambda: None)
    queue.task(name="other")(lambda: None)

    with pytest.raises(DuplicateTask, match="task 'now' lists it in formerly="):
        queue.task(name="then")(lambda: None)
    for taken in ("other", "then"):
        with pytest.raises(DuplicateTask, match=f"formerly='{taken}' is refused"):
            queue.task(name="third", formerly=(taken,))(lambda: None)
    # A new version of the task has the same old names.
    queue.task(name="now", version=2, formerly=("then",))(lambda: None)
    assert queue.registry.find("then", 2).version == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [("old.name", "must be a tuple of names"), (("now",), "the task's name now")],
)
def test_old_names_that_are_none_are_refused(
    queue: TaskQueue, wrong: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        queue.task(name="now", formerly=wrong)(lambda: None)
