"""What a task says of itself, and to who misuses it, before any server is asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pytest

from workstealing import AsyncTaskQueue, ExecutionContext, TaskQueue
from workstealing.client.task import Task, definition_of
from workstealing.errors import ConfigurationError, PayloadInvalid


@pytest.fixture(params=[TaskQueue, AsyncTaskQueue])
def queue(request: pytest.FixtureRequest) -> Any:
    return request.param("faces")


def resize(
    path: str, context: ExecutionContext, width: int = 50, *, fast: bool = False
) -> str:
    return f"{path} {width} {fast} {context.id}"


def shown(method: Callable[..., Any]) -> str:
    parameters = inspect.signature(method).parameters.values()
    return ", ".join(str(one).replace("'", "") for one in parameters)


def test_submitting_shows_the_parameters_of_the_function(queue: Any) -> None:
    task = queue.task(resize)

    own = "path: str, width: int = 50, fast: bool = False"
    for _ in range(2):
        assert shown(task.submit) == own
        assert shown(task.submit_in) == f"delay: float | timedelta, {own}"
        assert shown(task.submit_at).startswith("at: datetime, path: str, width: int")
    assert task.submit.__doc__ == "Put the task into the queue."


def test_each_task_shows_its_own_parameters(queue: Any) -> None:
    @queue.task
    def one(left: int) -> None: ...

    @queue.task
    def other(right: str) -> None: ...

    assert shown(one.submit) == "left: int"
    assert shown(other.submit) == "right: str"
    assert inspect.iscoroutinefunction(one.submit) == isinstance(queue, AsyncTaskQueue)


def test_a_parameter_that_is_called_like_one_of_ours_does_no_harm(queue: Any) -> None:
    @queue.task
    def wait(delay: float) -> None: ...

    assert shown(wait.submit) == "delay: float"
    assert "*args" in shown(wait.submit_in)


def test_a_task_with_options_takes_them_along_after_the_plain_one_was_seen() -> None:
    task: Any = TaskQueue("faces").task(resize)
    assert task.submit.__self__ is task
    urgent = task.options(priority=0)

    assert urgent.submit.__self__ is urgent


def test_a_method_of_a_subclass_is_not_replaced_by_ours() -> None:
    class Counted(Task[Any, Any]):
        count = 0

        def submit(self, *args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return super().submit(*args, **kwargs)

    queue = TaskQueue("faces")
    task = Counted(queue, definition_of(queue.task(resize)))
    for _ in range(2):
        with pytest.raises(PayloadInvalid):
            task.submit(1)

    assert task.count == 2


def test_an_unknown_option_of_a_task_is_told_with_the_one_that_was_meant(
    queue: Any,
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        queue.task(retires=3)(resize)

    assert str(caught.value) == (
        "a task has no option retires=. Did you mean retries=? It takes name, version,"
        " retries, retry_on, give_up_on, timeout, priority, accepts, restart,"
        " idempotent, permission, unique, expires, limit, fair_key, fair_weight,"
        " on_give_up, formerly, brief"
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [("prio", "prio=. Did you mean priority=? It"), ("colour", "colour=. It takes id")],
)
def test_an_unknown_option_of_a_submission_is_told_with_those_there_are(
    queue: Any, name: str, meant: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        queue.task(resize).options(**{name: 3})

    assert str(caught.value).startswith(f".options() has no option {meant}")
    assert "It takes id, priority, delay, at, expires, context, log, " in str(
        caught.value
    )


@pytest.mark.parametrize("when", ["now", 1, date(2030, 1, 1), datetime(2030, 1, 1)])
def test_a_time_without_its_zone_or_no_time_at_all_is_refused(when: Any) -> None:
    task: Any = TaskQueue("faces").task(resize)

    with pytest.raises(ConfigurationError, match=r"at.* time zone.*timezone.utc"):
        task.submit_at(when, "a")
    with pytest.raises(ConfigurationError, match=r"at.* time zone.*timezone.utc"):
        task.options(at=when)


def test_what_is_no_context_or_registry_is_refused_by_name() -> None:
    task: Any = TaskQueue("q").task(resize)

    with pytest.raises(ConfigurationError, match="context must be a ClientContext"):
        task.options(context="ann")
    with pytest.raises(ConfigurationError, match="registry must be a Registry"):
        TaskQueue("q", registry={})  # type: ignore[arg-type]


def test_a_delay_that_is_none_is_refused_before_the_arguments_are_looked_at() -> None:
    task: Any = TaskQueue("faces").task(resize)

    with pytest.raises(ConfigurationError, match="delay must be seconds, not 'x'"):
        task.submit_in("x")
    with pytest.raises(ConfigurationError, match="delay must be seconds, not 'x'"):
        task.options(delay="x")
