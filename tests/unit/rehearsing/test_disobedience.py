"""Who goes on with its work after an order to stop is told from who tidies up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from workstealing import ExecutionContext
from workstealing.errors import StopWork
from workstealing.rehearsing.fault_injector import FaultInjector, HeldClock
from workstealing.tasks.context import control_of

TaskBody = Callable[[ExecutionContext], object]
STOPPED_AT = 3
tidied: list[int] = []


class Notes:
    """Keeps nothing."""

    def save(self, value: object) -> bool:
        return value is None


@pytest.fixture
def went_on() -> Iterator[Callable[[TaskBody], str]]:
    """What runs a task that loses its lease, and returns where it went on."""
    before = sys.gettrace()

    def run(task: TaskBody) -> str:
        attempt: Any = SimpleNamespace(context=ExecutionContext("1", "task"))
        output: Any = SimpleNamespace(notes=lambda _: Notes())
        control_of(attempt.context).output = output
        channel: Any = None
        injector = FaultInjector(
            __name__.partition(".")[0],
            None,
            kills=False,
            channel=channel,
            clock=HeldClock(),
            lease=1.0,
        )
        injector.began(attempt)
        try:
            task(attempt.context)
        finally:
            injector.ended(is_done=True)
        return injector.findings.ignored

    yield run
    sys.settrace(before)


def lose(context: ExecutionContext) -> None:
    control_of(context).is_lease_lost = True


def rows(context: ExecutionContext) -> Iterator[int]:
    for row in range(6):
        if row == STOPPED_AT:
            lose(context)
        yield row


def break_off(context: ExecutionContext) -> int:
    total = 0
    for row in rows(context):
        try:
            context.check()
        except StopWork:
            break
        total += row
    tidied.append(total)
    return total


def tidy_up_in_a_loop(context: ExecutionContext) -> int:
    opened = []
    for row in rows(context):
        opened.append(row)
        try:
            context.check()
        except StopWork:
            break
    for row in tuple(opened):
        opened.remove(row)
    while opened:
        opened.pop()
    return len(opened)


def leave_a_context_manager(context: ExecutionContext) -> int:
    total = 0
    with suppress(KeyError):
        for row in rows(context):
            try:
                context.check()
            except StopWork:
                break
            total += row
    tidied.append(total)
    return total


def suppress_around_the_loop(context: ExecutionContext) -> int:
    total = 0
    with suppress(StopWork):
        for row in rows(context):
            context.check()
            total += row
    tidied.append(total)
    return total


def end_by_the_condition_of_the_loop(context: ExecutionContext) -> int:
    total, is_stopped, all_rows = 0, False, rows(context)
    while not is_stopped:
        try:
            total += next(all_rows)
            context.check()
        except StopWork:
            is_stopped = True
    tidied.append(total)
    return total


def is_stopped(context: ExecutionContext) -> bool:
    try:
        context.check()
    except StopWork:
        return True
    return False


def ask_a_function(context: ExecutionContext) -> int:
    total = 0
    for row in rows(context):
        if is_stopped(context):
            break
        total += row
    tidied.append(total)
    return total


@pytest.mark.parametrize(
    "task",
    [
        break_off,
        tidy_up_in_a_loop,
        leave_a_context_manager,
        suppress_around_the_loop,
        end_by_the_condition_of_the_loop,
        ask_a_function,
    ],
)
def test_who_leaves_the_loop_tidies_up_and_returns_has_obeyed(
    went_on: Callable[[TaskBody], str], task: TaskBody
) -> None:
    assert went_on(task) == ""


def save_although_stopped(context: ExecutionContext) -> None:
    lose(context)
    with suppress(StopWork):
        context.check()
    context.save(1)


def go_back_in_a_for_loop(context: ExecutionContext) -> int:
    total = 0
    for row in rows(context):
        if row == STOPPED_AT:
            with suppress(StopWork):
                context.check()
        total += row
    return total


def go_back_in_a_while_loop(context: ExecutionContext) -> int:
    row = 0
    lose(context)
    while row < 6:
        row += 1
        if row == STOPPED_AT:
            try:
                context.check()
            except StopWork:
                continue
    return row


def go_on_without_asking_again(context: ExecutionContext) -> int:
    total = 0
    for row in rows(context):
        if row == STOPPED_AT:
            is_stopped(context)
        total += row
    return total


def swallow_two_orders(context: ExecutionContext) -> None:
    lose(context)
    with suppress(StopWork):
        context.check()
    with suppress(StopWork):
        context.check()


@pytest.mark.parametrize(
    "task",
    [
        save_although_stopped,
        go_back_in_a_for_loop,
        go_back_in_a_while_loop,
        go_on_without_asking_again,
        swallow_two_orders,
    ],
)
def test_who_goes_on_with_its_work_has_not_obeyed(
    went_on: Callable[[TaskBody], str], task: TaskBody
) -> None:
    assert __file__.rpartition("/")[2] in went_on(task)
