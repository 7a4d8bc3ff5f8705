"""Dead letters are kept within bounds, and what was forgotten is counted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from workstealing import AsyncTaskQueue, Inspector, TaskQueue, Worker, WorkStealer
from workstealing.client.queue_internals import internals_of
from workstealing.errors import ConfigurationError

MakeQueue = Callable[..., TaskQueue]


def fail(queue: TaskQueue, number: int) -> None:
    @queue.task
    def failing() -> None:
        raise ValueError

    failing.submit_many([()] * number)
    Worker(queue).run(until_empty=True)


def forget(queue: TaskQueue) -> None:
    keys, driver = internals_of(queue).keys, internals_of(queue).driver
    driver.client.hdel(keys.upkeep, "expire")
    WorkStealer(queue).recruited()


def test_the_latest_dead_letters_are_kept_and_the_others_counted(
    make_queue: MakeQueue,
) -> None:
    queue = make_queue(max_dead=2)
    fail(queue, 5)

    forget(queue)

    assert queue.counts().dead == 2
    assert Inspector(queue).stat().totals.forgotten == 3


def test_dead_letters_are_kept_for_as_long_as_the_queue_says(
    make_queue: MakeQueue,
) -> None:
    queue = make_queue(dead_retention=timedelta(days=30))
    fail(queue, 1)
    forget(queue)
    assert queue.counts().dead == 1

    forget(make_queue(dead_retention=0))

    assert queue.counts().dead == 0


@pytest.mark.parametrize("kind", [TaskQueue, AsyncTaskQueue])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_dead": -1}, "max_dead must be 0 or more"),
        ({"dead_retention": -1}, "dead_retention must be 0 seconds or more"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(
    kind: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        kind("q", **options)


def test_a_list_of_dead_letters_says_which_failed(queue: TaskQueue) -> None:
    fail(queue, 1)

    (task,) = Inspector(queue).ls("dead")

    assert task.state.value == "failed"
