"""A task that is not begun in time ends as expired, and says so."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from workstealing import ClientContext, Inspector, Retry, State, TaskQueue, Worker
from workstealing.errors import ConfigurationError, TaskExpired, TaskFailed

Make = Callable[..., TaskQueue]


def echo(word: str) -> str:
    return word


def now() -> datetime:
    return datetime.now(timezone.utc)


@pytest.mark.parametrize(
    "expires",
    [0.001, timedelta(milliseconds=1), now() - timedelta(seconds=1)],
    ids=["seconds", "timedelta", "datetime"],
)
def test_a_task_that_is_begun_too_late_expires(make_queue: Make, expires: Any) -> None:
    queue = make_queue()
    task = queue.task(name="echo")(echo)
    late = task.options(expires=expires).submit("late")
    kept = task.options(expires=60).submit("kept")
    time.sleep(0.005)
    assert "It expired" in str(Inspector(queue).why(late.id))

    Worker(queue).run(until_empty=True)

    with pytest.raises(TaskExpired, match=r"expired: it did not start by 20"):
        late.result(timeout=5)
    assert kept.result(timeout=5) == "kept"
    assert late.state().state is State.EXPIRED
    totals = Inspector(queue).stat().totals
    assert (totals.expired, totals.done, totals.dead, totals.cancelled) == (1, 1, 0, 0)
    assert {row.state for row in Inspector(queue).ls("done")} == {
        State.DONE,
        State.EXPIRED,
    }
    assert "It expired: it did not start" in str(Inspector(queue).why(late.id))


def test_a_task_says_itself_how_long_it_may_wait(make_queue: Make) -> None:
    queue = make_queue()
    task = queue.task(name="echo", expires=0.001)(echo)
    late, kept = task.submit("late"), task.options(expires=60).submit("kept")
    time.sleep(0.005)

    Worker(queue).run(until_empty=True)

    assert late.state().state is State.EXPIRED
    assert kept.state().state is State.DONE


def test_the_time_counts_from_when_it_is_due(make_queue: Make) -> None:
    queue = make_queue()
    task = queue.task(name="echo", expires=5)(echo)

    soon = task.submit_in(0.05, "soon")
    Worker(queue).run(until_empty="all")

    assert soon.result(timeout=5) == "soon"


def test_what_a_worker_holds_already_expires_too(make_queue: Make) -> None:
    queue = make_queue()

    @queue.task(name="nap")
    def nap(seconds: float) -> None:
        time.sleep(seconds)

    nap.submit_many([(0.0,)] * 100)
    nap.submit(0.3)
    handles = nap.options(expires=0.15).submit_many([(0.0,)] * 20)

    Worker(queue).run(until_empty=True)

    assert {handle.state().state for handle in handles} == {State.EXPIRED}


def test_a_deadline_of_the_context_is_the_same_path(make_queue: Make) -> None:
    queue = make_queue()
    task = queue.task(name="echo")(echo)
    context = ClientContext(deadline=now() - timedelta(seconds=1))
    late = task.options(context=context, expires=60).submit("late")

    Worker(queue).run(until_empty=True)

    assert late.state().state is State.EXPIRED, "the earlier one counts"


def failing(queue: TaskQueue, seconds: float, begun: list[int]) -> Any:
    @queue.task(name="fail", retries=5)
    def fail() -> None:
        begun.append(1)
        raise Retry(after=seconds, reason="not today")

    return fail


def test_a_failed_task_keeps_its_error_if_it_would_be_tried_again_too_late(
    make_queue: Make,
) -> None:
    begun: list[int] = []
    queue = make_queue()
    handle = failing(queue, 60.0, begun).options(expires=30).submit()

    Worker(queue).run(until_empty="all")

    assert len(begun) == 1
    with pytest.raises(TaskFailed, match=r"not today.*it expires before"):
        handle.result(timeout=5)


def test_a_retry_that_comes_too_late_is_not_begun(make_queue: Make) -> None:
    begun: list[int] = []
    queue = make_queue()
    handle = failing(queue, 0.001, begun).options(expires=1.0).submit()
    Worker(queue).run(until_empty=True)
    before = len(begun)
    time.sleep(1.0)

    Worker(queue).run(until_empty="all")

    assert before >= 1
    assert len(begun) == before
    assert handle.state().state is State.EXPIRED


@pytest.mark.parametrize("expires", [0, -1, "soon", float("nan"), float("inf"), True])
def test_a_wrong_expiry_is_refused_when_it_is_said(
    make_queue: Make, expires: Any
) -> None:
    queue = make_queue()
    task = queue.task(name="echo")(echo)

    with pytest.raises(ConfigurationError, match="expires"):
        queue.task(name="other", expires=expires)(echo)
    with pytest.raises(ConfigurationError, match="expires"):
        task.options(expires=expires)


def test_a_time_without_a_zone_or_before_it_is_due_is_refused(make_queue: Make) -> None:
    task = make_queue().task(name="echo")(echo)

    with pytest.raises(ConfigurationError, match="expires needs a time zone"):
        task.options(expires=datetime(2030, 1, 1))
    with pytest.raises(ConfigurationError, match="before it is due"):
        task.options(at=now() + timedelta(hours=2), expires=now() + timedelta(hours=1))
