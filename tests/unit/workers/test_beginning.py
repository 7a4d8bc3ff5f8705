"""A task that must not be run twice is begun only with leave."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from workstealing.chance import SYSTEM_CHANCE
from workstealing.errors import RedisUnavailable
from workstealing.tasks.admission import Admission
from workstealing.tasks.attempt import Attempt, Report, Taken
from workstealing.tasks.executing import Executor
from workstealing.tasks.registry import Registry
from workstealing.tasks.task import define
from workstealing.workers.running import Runner

RAN: list[str] = []


def pay() -> None:
    RAN.append("pay")


def runner(begin: Callable[[Attempt], bool], *, idempotent: bool = False) -> Runner:
    RAN.clear()
    registry = Registry()
    registry.add(define(pay, "pay", idempotent=idempotent))
    executor = Executor(Admission(registry, None, None), "w.0", "q", SYSTEM_CHANCE)
    return Runner(executor, begin=begin)


TASK = Taken("id", "7", 1, b'{"v":1,"name":"pay","version":1,"payload":{}}')


def test_it_is_said_before_it_is_run() -> None:
    said: list[list[str]] = []

    def begin(attempt: Attempt) -> bool:
        said.append(list(RAN))
        return True

    report = runner(begin).execute(TASK)

    assert isinstance(report, Report)
    assert (report.verdict, said, RAN) == ("done", [[]], ["pay"])


def test_one_that_is_anothers_by_now_is_not_run() -> None:
    assert runner(lambda attempt: False).execute(TASK) is None
    assert RAN == []


def test_one_that_nobody_could_say_is_begun_is_not_run_and_comes_back() -> None:
    def begin(attempt: Attempt) -> bool:
        raise RedisUnavailable("the reply was lost")

    report = runner(begin).execute(TASK)

    assert isinstance(report, Report)
    assert (report.verdict, report.token, RAN) == ("back", "7", [])


def test_others_need_no_leave() -> None:
    def begin(attempt: Attempt) -> bool:
        pytest.fail("nobody should have asked")

    assert runner(begin, idempotent=True).execute(TASK) is not None
    assert RAN == ["pay"]
