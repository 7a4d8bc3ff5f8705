"""How attempts are run and reported; a task that must not be run twice is marked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from workstealing.chance import SYSTEM_CHANCE
from workstealing.errors import RedisUnavailable, TaskNotFound
from workstealing.tasks.admission import Admission
from workstealing.tasks.attempt import Attempt, Delivery, Ending, Report
from workstealing.tasks.definition import define
from workstealing.tasks.envelope import After
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.registry import Registry
from workstealing.tasks.runner import TaskRunner

RAN: list[str] = []


def pay() -> None:
    RAN.append("pay")


def greet(name: str) -> None:
    RAN.append(name)


class Output:
    """What a worker does for attempts, as the test says."""

    def __init__(self, begin: Callable[[Attempt], bool] = lambda _: True) -> None:
        self.may_begin = begin

    def argument(self, task: Delivery, after: After) -> bytes:
        raise AssertionError("nobody asks for one")

    def notes(self, attempt: Attempt) -> Any:
        raise AssertionError("nobody has any")

    def capture(self, attempt: Attempt) -> nullcontext[None]:
        return nullcontext()

    def settle(self, attempt: Attempt, report: Report | None) -> None:
        pass


def execute(begin: Callable[[Attempt], bool], *, idempotent: bool = False) -> Ending:
    RAN.clear()
    registry = Registry()
    registry.add(define(pay, "pay", idempotent=idempotent))
    admission = Admission(registry, None, None)
    runner = TaskRunner(admission, "w.0", "q", SYSTEM_CHANCE, Output(begin))
    return runner.execute(TASK, lambda attempt: attempt.definition.function())


TASK = Delivery("id", "7", 1, b'{"v":1,"name":"pay","version":1,"payload":{}}')


def test_a_task_is_marked_as_begun_before_it_is_run() -> None:
    said: list[list[str]] = []

    def begin(attempt: Attempt) -> bool:
        said.append(list(RAN))
        return True

    report = execute(begin)

    assert isinstance(report, Report)
    assert (report.verdict, said, RAN) == ("done", [[]], ["pay"])


def test_a_task_that_another_worker_has_is_not_run() -> None:
    assert execute(lambda attempt: False) is None
    assert RAN == []


def test_a_task_that_redis_could_not_mark_as_begun_goes_back() -> None:
    def begin(attempt: Attempt) -> bool:
        raise RedisUnavailable("the reply was lost")

    report = execute(begin)

    assert isinstance(report, Report)
    assert (report.verdict, report.token, RAN) == ("back", "7", [])


def test_a_task_that_may_be_repeated_is_not_marked() -> None:
    def begin(attempt: Attempt) -> bool:
        pytest.fail("nobody should have asked")

    assert execute(begin, idempotent=True) is not None
    assert RAN == ["pay"]


def test_a_step_whose_argument_is_gone_is_reported_by_the_clock_of_the_queue() -> None:
    class ArgumentGone(Output):
        def argument(self, task: Delivery, after: After) -> bytes:
            raise TaskNotFound(f"the outcome of {after.task} has expired")

    registry = Registry()
    registry.add(define(greet, "greet"))
    runner = TaskRunner(
        Admission(registry, None, None),
        "w.0",
        "q",
        SYSTEM_CHANCE,
        ArgumentGone(),
        time_ns=lambda: 2**61,
    )

    step = b'{"v":1,"name":"greet","version":1,"after":{"task":"t","into":"name"}'
    report = runner.execute(Delivery("id", "7", 1, step + b',"payload":{}}'), str)

    assert isinstance(report, Report)
    outcome = TaskOutcome.read(report.outcome)
    assert (outcome.state, outcome.took) == ("dead", 0)
