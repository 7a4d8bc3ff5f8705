"""Limits and fair keys as a user defines them, and the lines that they make."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from workstealing import Contract, Limit, Registry
from workstealing.errors import ConfigurationError, KeyFailed
from workstealing.queue.limit_calls import HeldBack
from workstealing.tasks.definition import TaskDefinition, define
from workstealing.tasks.submission import SubmitOptions, lines_of


def send(customer: int, text: str = "", *, urgent: bool = False) -> None: ...


def line(definition: TaskDefinition, *args: Any, **kwargs: Any) -> str:
    payload = definition.signature.encode(args, kwargs)
    ((name,), _) = lines_of(definition, [payload], SubmitOptions())
    return name


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "give one of them"),
        ({"concurrency": 1, "rate": 1, "period": 1}, "give one of them"),
        ({"concurrency": 0}, "concurrency must be 1 or more, not 0"),
        ({"concurrency": 1.5}, "whole number"),
        ({"rate": -1, "period": 1}, "rate must be 1 or more"),
        ({"rate": 1}, "Give period="),
        ({"rate": 1, "period": 0}, "period must be"),
        ({"concurrency": 1, "period": 1}, "goes with rate="),
        ({"concurrency": 1, "per": 3}, "or a function, not 3"),
        ({"concurrency": 1, "name": "a=b"}, "name of a limit"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(
    arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Limit(**arguments)


async def later(customer: int, text: str, *, urgent: bool) -> str:
    return f"{customer}{text}{urgent}"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"limit": 5}, "takes a Limit or a list of them"),
        ({"limit": Limit(concurrency=1, per="custmer")}, "Did you mean 'customer'"),
        ({"limit": [Limit(concurrency=1), Limit(concurrency=2)]}, "two limits named"),
        (
            {"limit": Limit(concurrency=1, per=lambda one: one)},
            "which it does not have",
        ),
        ({"fair_key": later}, "cannot be awaited"),
        ({"fair_key": "tenant"}, "names the argument 'tenant'"),
        ({"fair_key": 5}, "or a function, not 5"),
        ({"fair_weight": 2}, "goes with fair_key="),
        ({"fair_key": "customer", "fair_weight": 0}, "fair_weight must be above 0"),
        ({"fair_key": "customer", "fair_weight": 1e-300}, "must be 0.001 or more"),
        ({"fair_key": "customer", "fair_weight": math.inf}, "fair_weight must be"),
        ({"fair_key": "customer", "fair_weight": math.nan}, "fair_weight must be"),
    ],
)
def test_what_does_not_fit_the_task_is_refused_when_it_is_defined(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        define(send, "send", **options)


def test_a_line_is_named_by_priority_fair_key_weight_and_limit_keys() -> None:
    task = define(
        send,
        "send",
        limit=[
            Limit(concurrency=5, per="customer"),
            Limit(rate=10, period=timedelta(minutes=1), per="customer"),
            Limit(concurrency=50, name="mail"),
        ],
        fair_key=lambda urgent, text: f"{text}-{urgent}",
        fair_weight=2,
        priority=0,
    )

    assert line(task, 42, "x").split("\t") == [
        *("0", "x-False", "2"),
        *("send/customer=42", "send/customer:rate=42", "mail"),
    ]
    assert task.line_names is not None
    assert task.line_names.numbers == {
        "send/customer": "5",
        "send/customer:rate": "10/60000",
        "mail": "50",
    }


def test_several_arguments_make_one_key() -> None:
    limit = Limit(concurrency=1, per=["customer", "text"])
    task = define(send, "send", limit=limit)

    assert line(task, 42, "x") == '1\t\t\tsend/customer+text=[42,"x"]'
    with pytest.raises(ConfigurationError, match="several names or a function"):
        Limit(concurrency=1, per=[])
    with pytest.raises(ConfigurationError, match="Did you mean 'customer'"):
        define(send, "send", limit=Limit(concurrency=1, per=["custmer"]))


def test_a_weight_takes_the_arguments_that_it_names() -> None:
    task = define(send, "send", fair_key="customer", fair_weight=lambda text: len(text))

    assert line(task, 7, "four") == "1\t7\t4"
    with pytest.raises(ConfigurationError, match="arguments by name, and takes"):
        define(send, "send", fair_key=lambda customer, /: customer)


def test_a_task_without_limits_has_no_line() -> None:
    task = define(send, "send")

    assert lines_of(task, [b"{}"], SubmitOptions()) == ([], {})


def test_a_submission_may_name_its_fair_key() -> None:
    options = SubmitOptions(fair_key="tenant-7", fair_weight=0.5, priority=2)

    assert lines_of(define(send, "send"), [b"{}"], options) == (
        ["2\ttenant-7\t0.5"],
        {},
    )
    with pytest.raises(ConfigurationError, match="the key itself"):
        SubmitOptions(fair_key=7)  # type: ignore[arg-type]


def test_a_key_of_none_is_not_limited() -> None:
    task = define(
        send,
        "send",
        limit=Limit(concurrency=1, per=lambda customer: None),
    )

    assert line(task, 1) == ""


@pytest.mark.parametrize("text", ["", "x" * 201, "a\tb", "a\0b"])
def test_a_key_that_is_empty_long_or_not_printable_is_hashed(text: str) -> None:
    task = define(send, "send", limit=Limit(concurrency=1, per="text"))

    name = line(task, 1, text)

    assert "=sha256:" in name
    assert len(name) < 80
    assert name != line(task, 1, text + "y")


def test_a_number_of_thousands_of_digits_is_hashed_too() -> None:
    task = define(send, "send", fair_key=lambda customer: 10**5000 + customer)

    assert line(task, 1).startswith("1\tsha256:")
    assert line(task, 1) != line(task, 2)


def test_a_key_function_that_raises_is_told_to_the_caller() -> None:
    def broken(*_: Any, **__: Any) -> str:
        raise LookupError("no such tenant")

    task = define(send, "send", fair_key=broken)

    with pytest.raises(KeyFailed, match="no such tenant; nothing was submitted") as got:
        line(task, 1)
    assert isinstance(got.value.__cause__, LookupError)


def test_a_key_must_be_a_text_or_a_number() -> None:
    task = define(send, "send", fair_key=lambda *_, **__: ["a"])

    with pytest.raises(KeyFailed, match="not list"):
        line(task, 1)


@dataclass
class Order:
    customer: int


def test_the_implementation_of_a_contract_has_limits() -> None:
    contract = Contract("order", payload=Order)

    def order(it: Order) -> None: ...

    task = contract.implemented_by(
        order, limit=Limit(concurrency=1, per=lambda it: it.customer, name="customer")
    )

    (names, _) = lines_of(task, [b'{"customer":7}'], SubmitOptions())
    assert names == ["1\t\t\tcustomer=7"]


def test_tasks_that_share_a_limit_give_it_the_same_numbers() -> None:
    registry = Registry()
    registry.add(define(send, "a", limit=Limit(concurrency=1, name="mail")))
    registry.add(define(send, "b", limit=Limit(concurrency=1, name="mail")))

    with pytest.raises(ConfigurationError, match="share the limit mail"):
        registry.add(define(send, "c", limit=Limit(concurrency=2, name="mail")))


def test_who_is_held_back_by_a_rate_is_told_when_the_next_may_begin() -> None:
    held = HeldBack(0, "mail", most=1, running=0, refill_ms=59_496)

    assert held.reason == (
        "held back by limit mail: 1 has begun; the next may begin in 59.5 s"
    )
